"""TMX, the exchange format of translation memories: ``<tu>`` with one ``<tuv xml:lang>`` per language."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, Optional, Sequence, Tuple

from lxml import etree

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document, Sentence, split_at_names
from docnmt_fairseq.corpus.readers.base import Omitted, Reader, ReaderOptions, register
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
NOTE = "note"
CODES = ("bpt", "ept", "it", "ph", "ut")  # elements with formatting codes, not text


@dataclass(frozen=True)
class TmxOptions(ReaderOptions):
    """Options of TMX."""

    document_prop: Optional[str] = option(
        None,
        f"type of the <prop> with the name of the document, or {NOTE} for the <note>; otherwise a file is a document",
        metavar="TYPE",
    )


@register("tmx")
class TmxReader(Reader):
    """Translation memories."""

    help = "TMX, documents are files, or see --document-prop; units without one of the languages are left out"
    files = "one or more files"
    Options = TmxOptions

    options: TmxOptions

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields the documents; ``en`` also matches ``en-US`` if there is no ``en``."""
        for path in paths:
            yield from split_at_names(self._units(path), (str(path),) * self.sides, str(path))

    def _units(self, path: Path) -> Iterator[Tuple[int, str, Sentence]]:
        """Yields line, document name and texts of every unit that has all languages."""
        omitted = Omitted(path, "units", self.reading.drop_incomplete)
        for unit in xml.iterate_elements(path, "tu"):
            variants = _variants(unit)
            found = [_in_language(variants, language) for language in self.reading.languages]
            segments = [None if variant is None else variant.find("seg") for variant in found]
            row = None
            if all(segment is not None for segment in segments):
                with omitted.catch():
                    texts = tuple(_text_of(path, segment) for segment in segments if segment is not None)
                    row = xml.line_of(unit), self._document(path, unit), texts
            if row is not None:
                yield row
        omitted.report()

    def _document(self, path: Path, unit: etree._Element) -> str:
        """Returns the name of a unit's document, from the unit or one of its variants."""
        wanted = self.options.document_prop
        if wanted is None:
            return str(path)
        for element in unit.iter(NOTE if wanted == NOTE else "prop"):
            name = " ".join((element.text or "").split())
            if name and (wanted == NOTE or element.get("type") == wanted):
                return name
        what = "<note>" if wanted == NOTE else f'<prop type="{wanted}">'
        message = f"a unit without {what}, the name of its document; see --document-prop"
        raise InputError.at(path, xml.line_of(unit), message)


def _variants(unit: etree._Element) -> Dict[str, etree._Element]:
    """Returns the first variant of each language."""
    variants: Dict[str, etree._Element] = {}
    for variant in unit.findall("tuv"):
        language = variant.get(LANGUAGE) or variant.get("lang") or ""
        variants.setdefault(language.lower().replace("_", "-"), variant)
    return variants


def _in_language(variants: Dict[str, etree._Element], language: str) -> Optional[etree._Element]:
    """Returns the variant of a language, or of one of its regions."""
    wanted = language.lower().replace("_", "-")
    if wanted in variants:
        return variants[wanted]
    return next((variant for name, variant in variants.items() if name.startswith(f"{wanted}-")), None)


def _text_of(path: Path, segment: etree._Element) -> str:
    """Returns the text of a segment without codes."""
    for code in list(segment.iter(*CODES)):
        code.text = None
        for child in list(code):  # <sub> is text inside a code, such as a footnote
            code.remove(child)
    return xml.text_of(path, segment)
