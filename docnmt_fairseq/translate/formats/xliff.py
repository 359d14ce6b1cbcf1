"""XLIFF 1.2 and 2.0 (.xlf, .xliff)."""

from copy import deepcopy
from typing import Iterator, List, Optional

from lxml import etree

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, register
from docnmt_fairseq.translate.formats.inline import marks_of_message
from docnmt_fairseq.translate.formats.xml_text import ancestors, local_name, parse_xml, slots_within, xml_bytes

TAGS_PER_SENTENCE = 50
SEGMENTS = ("trans-unit", "segment")  # of XLIFF 1.2 and 2.0
AROUND_TEXT = ("g", "pc", "mrk")  # inline codes that contain text
UNTRANSLATED = ("new", "needs-translation")  # states of XLIFF 1.2
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@register("xliff")
class Xliff(WholeFile):
    """Untranslated segments; inline codes keep their order."""

    help = "XLIFF 1.2 and 2.0: untranslated segments"
    endings = (".xlf", ".xliff")

    def parse(self, content: bytes, name: str) -> Parsed:
        self.reading.limits.check(content.count(b"<"), "tags", name, TAGS_PER_SENTENCE)
        tree = parse_xml(content, name)
        root = tree.getroot()
        if local_name(root) != "xliff":
            raise InputError(f"{name}: not XLIFF, but <{local_name(root)}>")
        sources = list(_sources(root))
        slots = [slots_within(source, _is_text, marks_of_message) for source in sources]
        segments = [own.segment(new_paragraph=_starts_unit(source)) for own, source in zip(slots, sources)]

        def render(pieces: List[Pieces]) -> bytes:
            for source, new in zip(sources, pieces):
                self._translate(source, new)
            if root.get("srcLang") and not root.get("trgLang"):  # XLIFF 2 requires it for translations
                root.set("trgLang", self.reading.languages()[1])
            return xml_bytes(tree, content)

        return Parsed(segments, render)

    def _translate(self, source: etree._Element, pieces: Pieces) -> None:
        """Adds the translation to the segment of a source."""
        target = deepcopy(source)
        target.tag = etree.QName(etree.QName(source).namespace, "target").text
        slots_within(target, _is_text, marks_of_message).fill(pieces)
        if target.get(LANGUAGE):
            target.set(LANGUAGE, self.reading.languages()[1])
        segment = source.getparent()
        assert segment is not None
        old = _child(segment, "target")
        if old is not None:
            for attribute, value in old.attrib.items():
                target.set(attribute, value)
            target.tail = old.tail
            segment.replace(old, target)
        else:
            before = _child(segment, "seg-source")
            (source if before is None else before).addnext(target)
        # Without a state, tools may take a 1.2 target as reviewed, a 2.0 segment as untranslated.
        (segment if local_name(segment) == "segment" else target).set("state", "translated")


def _sources(root: etree._Element) -> Iterator[etree._Element]:
    """Yields the sources without a translation."""
    for element in root.iter(etree.Element):
        if local_name(element) not in SEGMENTS or any(one.get("translate") == "no" for one in ancestors(element)):
            continue
        source, target = _child(element, "source"), _child(element, "target")
        if source is not None and (target is None or _is_untranslated(element, source, target)):
            yield source


def _is_untranslated(segment: etree._Element, source: etree._Element, target: etree._Element) -> bool:
    """Returns whether a target is empty, or a copy of the source with an initial state."""
    text, copied = ("".join(map(str, element.itertext())).strip() for element in (target, source))
    return not text or (text == copied and (target.get("state") in UNTRANSLATED or segment.get("state") == "initial"))


def _child(element: etree._Element, name: str) -> Optional[etree._Element]:
    return next((child for child in element if local_name(child) == name), None)


def _starts_unit(source: etree._Element) -> bool:
    """Returns whether a source is in the first segment of its unit."""
    segment = source.getparent()
    if segment is None or local_name(segment) != "segment":
        return True
    return all(local_name(before) != "segment" for before in segment.itersiblings(preceding=True))


def _is_text(element: etree._Element) -> bool:
    protected = element.get("translate") == "no" or element.get("mtype") == "protected"
    return local_name(element) in AROUND_TEXT and not protected
