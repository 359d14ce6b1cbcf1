"""Readers of OPUS: XML with alignments of sentence ids, and Moses text with ``.ids``.

In XML the documents of a language are a zip file, as OPUS distributes them, or a folder; those of OpenSubtitles are
films.
"""

import gzip
import logging
from collections import Counter
from contextlib import ExitStack, closing
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, cast
from zipfile import ZipFile

from lxml import etree

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.document import Document, DocumentBuilder, Sentence, split_at_names
from docnmt_fairseq.corpus.files import existing_file, open_binary
from docnmt_fairseq.corpus.readers.base import Omitted, Reader, register
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


@register("opus-xml")
class OpusXmlReader(Reader):
    """OPUS XML."""

    help = "OPUS XML, documents are films; the sentences of a link are joined, links with an empty side dropped"
    files = "ALIGNMENT.xml[.gz] SOURCE TARGET: the documents of a language are OPUS's zip file or a folder"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        return self.exactly(3 if self.sides == 2 else 0, arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per pair of films; the alignment may have either direction."""
        alignment, *archives = paths
        counts: Counter[str] = Counter()
        omitted = Omitted(alignment, "films", self.reading.drop_incomplete)
        with ExitStack() as stack:
            sides = [stack.enter_context(closing(Archive(path))) for path in archives]
            for group in xml.iterate_elements(alignment, "linkGrp"):
                names = [xml.required(alignment, group, "fromDoc"), xml.required(alignment, group, "toDoc")]
                order = _order(alignment, group, names, self.reading.languages)
                document = None
                with omitted.catch():
                    films = []
                    for side, archive in zip(order, sides):
                        film = archive.film(names[side])
                        if film is None:
                            message = f"{names[side]} is not in {archive.path}"
                            raise InputError.at(alignment, xml.line_of(group), message)
                        films.append(film)
                    document = _aligned_document(alignment, films, _links(alignment, group, order), counts)
                if document is not None:
                    yield document
        omitted.report()
        logger.info(
            f"{alignment}: {counts['documents']} documents, {counts['pairs']} pairs, {counts['joined']} of them joined "
            f"from several sentences (n-to-m); {counts['dropped']} links with an empty side dropped"
        )


class FilmSentence(NamedTuple):
    """Sentence of a film: its text, its line, and the number of its ``<p>`` (0 outside)."""

    text: str
    line: int
    paragraph: int


class Film(NamedTuple):
    """Name of a film, for messages, and its sentences by id."""

    name: str
    sentences: Dict[str, FilmSentence]


class Archive:
    """Films of one language: a zip file of OPUS, or the folder of the language or its parent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = None if path.is_dir() else ZipFile(path)
        self._prefix: Optional[str] = None  # of the members, such as "OpenSubtitles/xml/"; known after the first film

    def close(self) -> None:
        """Closes the zip file."""
        if self._zip is not None:
            self._zip.close()

    def film(self, name: str) -> Optional[Film]:
        """Returns the film that an alignment names (``en/2001/1234/5.xml.gz``), packed or not; None if missing."""
        if ".." in PurePosixPath(name).parts or name.startswith("/"):
            return None  # an alignment must not point outside of its corpus
        plain = name.removesuffix(".gz")
        for candidate in (plain, f"{plain}.gz"):
            if (found := self._open(candidate)) is not None:
                shown, stream = found
                with stream:
                    return Film(shown, _sentences(shown, stream))
        return None

    def _open(self, name: str) -> Optional[Tuple[str, BinaryIO]]:
        if self._zip is None:
            paths = (self.path / name, self.path.joinpath(*PurePosixPath(name).parts[1:]))
            return next(((str(path), open_binary(path)) for path in paths if path.is_file()), None)
        if self._prefix is None:
            found = next((m for m in self._zip.NameToInfo if m == name or m.endswith(f"/{name}")), None)
            self._prefix = found and found[: -len(name)]
        member = f"{self._prefix or ''}{name}"
        if member not in self._zip.NameToInfo:
            return None
        stream = self._zip.open(member)
        unpacked = gzip.GzipFile(fileobj=stream) if member.endswith(".gz") else BufferedReader(cast(RawIOBase, stream))
        return f"{self.path}/{member}", cast(BinaryIO, unpacked)


def _sentences(name: str, stream: BinaryIO) -> Dict[str, FilmSentence]:
    """Returns the ``<s>`` of a film by id: their words (``<w>``) if the text is tokenised, otherwise their text."""
    found: Dict[str, FilmSentence] = {}
    paragraph, number = None, 0
    for element in xml.iterate_elements(name, "s", stream):
        identifier = xml.required(name, element, "id")
        parent = element.getparent()
        if parent is not None and parent.tag == "p" and parent is not paragraph:
            paragraph, number = parent, number + 1
        words = [word.text.strip() for word in element.iter("w") if word.text]
        text = " ".join(words) if words else xml.text_of(name, element)
        sentence = FilmSentence(text, xml.line_of(element), number)
        xml.add_once(found, identifier, sentence, name, sentence.line, "<s")
    return found


def _aligned_document(
    place: Path, films: Sequence[Film], links: Iterator[Tuple[int, List[List[str]]]], counts: "Counter[str]"
) -> Optional[Document]:
    """Returns the linked sentences of two films as a document with the paragraphs of the source; None if empty."""
    builder = DocumentBuilder(tuple(film.name for film in films))
    paragraph = None
    for line, sides in links:
        if not all(sides):
            counts["dropped"] += 1
            continue
        for film, identifiers in zip(films, sides):
            missing = [identifier for identifier in identifiers if identifier not in film.sentences]
            if missing:
                raise InputError.at(place, line, f"sentence {missing[0]} is not in {film.name}")
        rows = [[film.sentences[identifier] for identifier in side] for film, side in zip(films, sides)]
        counts["joined"] += any(len(row) > 1 for row in rows)
        if rows[0][0].paragraph != paragraph:
            paragraph = rows[0][0].paragraph
            builder.end_paragraph()
        texts = tuple(" ".join(sentence.text for sentence in row if sentence.text) for row in rows)
        builder.add(texts, tuple(row[0].line for row in rows))
    if builder.empty:
        return None
    document = builder.end_document()
    counts["documents"] += 1
    counts["pairs"] += len(document)
    return document


def _order(alignment: Path, group: etree._Element, names: Sequence[str], wanted: Sequence[str]) -> Tuple[int, int]:
    """Returns the positions of source and target in ``fromDoc``, ``toDoc``, from the folders of the documents."""
    found = [name.split("/")[0] for name in names]
    # "zh" also matches "zh_cn", but "pt" is preferred to "pt_br".
    for matches in (str.__eq__, lambda language, asked: f"{language}_".startswith(f"{asked}_")):
        for order in ((0, 1), (1, 0)):
            if all(matches(found[side], language) for side, language in zip(order, wanted)):
                return order
    message = f"aligns {' with '.join(found)}, but --source-lang and --target-lang are {' and '.join(wanted)}"
    raise InputError.at(alignment, xml.line_of(group), message)


def _links(alignment: Path, group: etree._Element, order: Tuple[int, int]) -> Iterator[Tuple[int, List[List[str]]]]:
    """Yields line and sentence ids of each side of every ``<link xtargets="1 2;1">``."""
    for link in group.iter("link"):
        sides = xml.required(alignment, link, "xtargets").split(";")
        yield xml.line_of(link), [sides[side].split() for side in order]


@register("opus-moses")
class OpusMosesReader(Reader):
    """OPUS Moses text with sentence ids."""

    help = "OPUS Moses text with .ids (OpenSubtitles), with the films in the first two columns"
    files = "PREFIX (files PREFIX.SOURCE, PREFIX.TARGET and PREFIX.ids), or the text of each side and then the .ids"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        if len(arguments) == 1:
            return [existing_file(f"{arguments[0]}.{suffix}") for suffix in [*self.reading.languages, "ids"]]
        return self.exactly(self.sides + 1, arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per pair of films; pairs joined from several sentences are counted in the log."""
        *texts, ids = paths
        return split_at_names(_moses_rows(paths), tuple(map(str, texts)), str(ids))


def _moses_rows(paths: Sequence[Path]) -> Iterator[Tuple[int, str, Sentence]]:
    number = joined = 0
    for number, (*texts, row) in parallel_lines(paths):
        columns = row.split("\t")
        if len(columns) < 2:
            raise InputError.at(paths[-1], number, "expected film<tab>film<tab>sentence ids<tab>sentence ids")
        joined += any(" " in identifiers for identifiers in columns[2:4])
        yield number, f"{columns[0]} {columns[1]}", tuple(texts)
    logger.info(f"{paths[-1]}: {number} pairs, {joined} of them joined from several sentences (n-to-m)")
