"""OPUS XML (OpenSubtitles, News-Commentary11): a file a document and language, and an alignment of sentence ids."""

import logging
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Iterator, List, Sequence, Tuple

from lxml import etree

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.opus import Archive, LinkCounts, aligned_document
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


@register("opus-xml")
class OpusXmlReader(Reader):
    """XML of OPUS."""

    help = "OPUS XML, a document a film; sentences of a link are joined, links with an empty side dropped, both counted"
    files = "ALIGNMENT.xml[.gz] SOURCE TARGET, the documents of a language being OPUS's zip file or a folder"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """The alignment, then the documents of the source and those of the target."""
        if self.sides != 2 or len(arguments) != 3:
            raise InputError(f"format {self.name} takes {self.files} (and both languages), got {' '.join(arguments)}")
        return [Path(argument) for argument in arguments]

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields a document a pair of films, holding one pair in memory; the alignment may have either direction.

        Raises:
            InputError: malformed XML, other languages, a film or sentence that the alignment names and nobody has.
        """
        alignment, *archives = paths
        counts = LinkCounts()
        with ExitStack() as stack:
            sides = [stack.enter_context(closing(Archive(path))) for path in archives]
            for group in xml.iterate_elements(alignment, "linkGrp"):
                names = [xml.required(alignment, group, "fromDoc"), xml.required(alignment, group, "toDoc")]
                order = _order(alignment, group, names, self.reading.languages)
                films = []
                for side, archive in zip(order, sides):
                    film = archive.film(names[side])
                    if film is None:
                        raise InputError.at(alignment, xml.line_of(group), f"{names[side]} is not in {archive.path}")
                    films.append(film)
                document = aligned_document(str(alignment), tuple(films), _links(alignment, group, order), counts)
                if document is not None:
                    yield document
        logger.info(
            f"{alignment}: {counts.films} documents, {counts.pairs} pairs, {counts.joined} of them joined from several "
            f"sentences (n-to-m); {counts.dropped} links with an empty side dropped"
        )


def _order(alignment: Path, group: etree._Element, names: Sequence[str], wanted: Sequence[str]) -> Tuple[int, int]:
    """Which of ``fromDoc`` and ``toDoc`` is source and which is target, by the folders they are in."""
    found = [name.split("/")[0] for name in names]
    # "zh" stands for "zh_cn" as well, but "pt" beside "pt_br" for itself.
    for matches in (str.__eq__, lambda language, asked: f"{language}_".startswith(f"{asked}_")):
        for order in ((0, 1), (1, 0)):
            if all(matches(found[side], language) for side, language in zip(order, wanted)):
                return order
    message = f"aligns {' with '.join(found)}, but --source-lang and --target-lang are {' and '.join(wanted)}"
    raise InputError.at(alignment, xml.line_of(group), message)


def _links(alignment: Path, group: etree._Element, order: Tuple[int, int]) -> Iterator[Tuple[int, List[List[str]]]]:
    """Yields line and sentence ids of each side for every ``<link xtargets="1 2;1">``."""
    for link in group.iter("link"):
        sides = xml.required(alignment, link, "xtargets").split(";")
        if len(sides) != 2:
            raise InputError.at(alignment, xml.line_of(link), f"xtargets={link.get('xtargets')!r}: expected ids;ids")
        yield xml.line_of(link), [sides[side].split() for side in order]
