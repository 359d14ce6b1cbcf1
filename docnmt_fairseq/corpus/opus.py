"""OPUS on disk: archives of XML documents ("films"), their sentences, and the links between two of them."""

import gzip
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Tuple, cast
from zipfile import BadZipFile, ZipFile

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import open_binary
from docnmt_fairseq.errors import InputError


class FilmSentence(NamedTuple):
    """A sentence of a film: its text, its line, and the number of its ``<p>`` (0 outside of any)."""

    text: str
    line: int
    paragraph: int


class Film(NamedTuple):
    """A film's name for messages, and its sentences by id."""

    name: str
    sentences: Dict[str, FilmSentence]


@dataclass
class LinkCounts:
    """What became of the links: pairs in all, of them joined from several sentences; dropped with an empty side."""

    films: int = 0
    pairs: int = 0
    joined: int = 0
    dropped: int = 0


class Archive:
    """The films of one language: a zip file as OPUS packs them, or a folder that is or holds the language's folder."""

    def __init__(self, path: Path) -> None:
        """Opens it.

        Raises:
            InputError: neither a folder nor a zip file.
        """
        self.path = path
        self._zip: Optional[ZipFile] = None
        self._prefix: Optional[str] = None  # of the members, such as "OpenSubtitles/xml/"; known from the first film on
        if not path.is_dir():
            try:
                self._zip = ZipFile(path)
            except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
                raise InputError(f"{path}: neither a folder nor a zip file of XML documents") from error

    def close(self) -> None:
        """Closes the zip file."""
        if self._zip is not None:
            self._zip.close()

    def film(self, name: str) -> Optional[Film]:
        """The film that an alignment names (``en/2001/1234/5.xml.gz``), packed or not; None if there is none.

        Raises:
            InputError: damaged, not well-formed, or a sentence without id or with one that comes twice.
        """
        plain = name[: -len(".gz")] if name.endswith(".gz") else name
        for candidate in (plain, f"{plain}.gz"):
            found = self._open(candidate)
            if found is not None:
                shown, stream = found
                with stream:
                    return Film(shown, _sentences(shown, stream))
        return None

    def _open(self, name: str) -> Optional[Tuple[str, BinaryIO]]:
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/"):
            return None  # an alignment must not point out of its corpus
        if self._zip is None:
            for path in (self.path / name, self.path.joinpath(*parts[1:])):
                if path.is_file():
                    return str(path), open_binary(path)
            return None
        member = self._member(name)
        if member is None:
            return None
        try:
            stream = self._zip.open(member)
        except (BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{self.path}/{member}: cannot be unpacked: {error}") from error
        unpacked = gzip.GzipFile(fileobj=stream) if member.endswith(".gz") else BufferedReader(cast(RawIOBase, stream))
        return f"{self.path}/{member}", cast(BinaryIO, unpacked)

    def _member(self, name: str) -> Optional[str]:
        assert self._zip is not None
        if self._prefix is None:
            ending = next((m for m in self._zip.NameToInfo if m == name or m.endswith(f"/{name}")), None)
            if ending is None:
                return None
            self._prefix = ending[: -len(name)]
        member = self._prefix + name
        return member if member in self._zip.NameToInfo else None


def _sentences(name: str, stream: BinaryIO) -> Dict[str, FilmSentence]:
    """The ``<s>`` of a film; words (``<w>``) where the text is tokenised, else the text."""
    found: Dict[str, FilmSentence] = {}
    paragraph, number = None, 0
    for element in xml.iterate_elements(name, "s", stream):
        identifier = xml.required(name, element, "id")
        if identifier in found:
            raise InputError.at(name, xml.line_of(element), f"<s id={identifier!r}> occurs twice")
        parent = element.getparent()
        if parent is not None and parent.tag == "p" and parent is not paragraph:
            paragraph, number = parent, number + 1
        words = [word.text.strip() for word in element.iter("w") if word.text]
        text = " ".join(words) if words else xml.text_of(name, element)
        found[identifier] = FilmSentence(text, xml.line_of(element), number)
    return found


def aligned_document(
    place: str, films: Tuple[Film, ...], links: Iterator[Tuple[int, List[List[str]]]], counts: LinkCounts
) -> Optional[Document]:
    """The linked sentences of two films as a document, or None if there are none.

    The sentences of a link are joined with a space between; a link with an empty side is dropped. Paragraphs are those
    of the source.

    Args:
        place: the alignment file.
        films: source, target.
        links: line in the alignment, sentence ids of each side.
        counts: added to.

    Raises:
        InputError: a link to a sentence that its film does not have.
    """
    builder = DocumentBuilder(tuple(film.name for film in films))
    paragraph = None
    for line, sides in links:
        if not all(sides):
            counts.dropped += 1
            continue
        for film, identifiers in zip(films, sides):
            lacking = [identifier for identifier in identifiers if identifier not in film.sentences]
            if lacking:
                raise InputError.at(place, line, f"sentence {lacking[0]} is not in {film.name}")
        rows = [[film.sentences[identifier] for identifier in side] for film, side in zip(films, sides)]
        counts.joined += any(len(row) > 1 for row in rows)
        if rows[0][0].paragraph != paragraph:
            paragraph = rows[0][0].paragraph
            builder.end_paragraph()
        texts = tuple(" ".join(sentence.text for sentence in row if sentence.text) for row in rows)
        builder.add(texts, tuple(row[0].line for row in rows))
    if builder.empty:
        return None
    document = builder.end_document()
    counts.films += 1
    counts.pairs += len(document)
    return document
