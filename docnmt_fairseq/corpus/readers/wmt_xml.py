"""WMT XML: ``<doc id>`` with ``<src lang>``, any number of ``<ref lang translator>``, paragraphs, numbered segments."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from lxml import etree

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.readers.base import Omitted, Reader, ReaderOptions, register
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WmtXmlOptions(ReaderOptions):
    """Options of WMT XML."""

    reference: Optional[str] = option(
        None, "reference to read: translator, or index from 0 (default: the first)", metavar="NAME"
    )


@register("wmt-xml")
class WmtXmlReader(Reader):
    """XML of the WMT news tasks."""

    help = "WMT XML with paragraphs and one or more references"
    files = "one XML file"
    Options = WmtXmlOptions

    resolve = Reader.one_file
    options: WmtXmlOptions
    _reported = False  # that there are several references

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents with the paragraphs of the source; ``<hyp>`` is skipped."""
        (path,) = paths
        omitted = Omitted(path, "documents", self.reading.drop_incomplete)
        for element in xml.iterate_elements(path, "doc"):
            name = f"document {element.get('id')}"
            document = None
            with omitted.catch():
                document = _document(path, name, self._sides(path, element, name))
            if document is not None:
                yield document
        omitted.report()

    def _sides(self, path: Path, element: etree._Element, name: str) -> List[etree._Element]:
        """Returns the <src> and the <ref> of a document that are read."""
        sides = _in_language(path, element, name, "src", self.reading.source_lang)[:1]
        if self.reading.target_lang is not None:
            references = _in_language(path, element, name, "ref", self.reading.target_lang)
            if len(references) > 1 and self.options.reference is None and not self._reported:
                self._reported = True
                logger.info(f"{path}: several references ({_names(references)}), reading the first; see --reference")
            sides.append(_choose(path, element, name, references, self.options.reference))
        return sides


def _in_language(path: Path, element: etree._Element, name: str, tag: str, language: str) -> List[etree._Element]:
    """Returns the <src> or <ref> elements of a language, at least one."""
    candidates = element.findall(tag)
    chosen = [candidate for candidate in candidates if candidate.get("lang") == language]
    if not chosen:
        languages = ", ".join(sorted({candidate.get("lang", "?") for candidate in candidates})) or "none"
        raise InputError.at(path, xml.line_of(element), f"{name}: no <{tag} lang={language!r}>; it has: {languages}")
    return chosen


def _choose(
    path: Path, element: etree._Element, name: str, references: List[etree._Element], wanted: Optional[str]
) -> etree._Element:
    """Returns the reference with this translator name, otherwise with this index."""
    if wanted is None:
        return references[0]
    for reference in references:
        if reference.get("translator") == wanted:
            return reference
    if wanted.isdigit() and int(wanted) < len(references):
        return references[int(wanted)]
    raise InputError.at(
        path, xml.line_of(element), f"{name}: no reference {wanted!r} (--reference); it has: {_names(references)}"
    )


def _names(references: List[etree._Element]) -> str:
    return ", ".join(reference.get("translator", str(index)) for index, reference in enumerate(references))


def _document(path: Path, name: str, sides: List[etree._Element]) -> Optional[Document]:
    """Returns the document in the order and paragraphs of the source; None if it has no segments."""
    segments = [xml.segments(path, side, name) for side in sides]
    for side, found in zip(sides[1:], segments[1:]):
        xml.check_same_ids(path, xml.line_of(side), name, segments[0], found)
    builder = DocumentBuilder((str(path),) * len(sides))
    paragraph = None
    for identifier, segment in segments[0].items():
        if segment.getparent() is not paragraph:
            paragraph = segment.getparent()
            builder.end_paragraph()
        row = [found[identifier] for found in segments]
        builder.add(tuple(xml.text_of(path, seg) for seg in row), tuple(xml.line_of(seg) for seg in row))
    return None if builder.empty else builder.end_document()
