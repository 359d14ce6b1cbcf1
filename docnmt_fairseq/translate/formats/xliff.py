"""XLIFF 1.2 and 2.0 (.xlf, .xliff)."""

from copy import deepcopy
from typing import Iterator, List, Optional

from lxml import etree

from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, register
from docnmt_fairseq.translate.formats.messages import marks_of_message
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
        sources = list(_sources(root))
        slots = [slots_within(source, _is_text, marks_of_message) for source in sources]
        segments = [own.segments(new_paragraph=_starts_unit(source)) for own, source in zip(slots, sources)]

        def render(pieces: List[Pieces]) -> bytes:
            rest = iter(pieces)
            for source in sources:
                self._translate(source, rest)
            if root.get("srcLang") and not root.get("trgLang"):  # XLIFF 2 requires it for translations
                root.set("trgLang", self.reading.languages()[1])
            return xml_bytes(tree, content)

        return Parsed([one for own in segments for one in own], render)

    def _translate(self, source: etree._Element, pieces: Iterator[Pieces]) -> None:
        """Adds the translation of a source, or of a part of it, to its unit."""
        unit = next(one for one in ancestors(source) if local_name(one) in SEGMENTS)
        new = deepcopy(source)
        slots_within(new, _is_text, marks_of_message).fill(pieces)
        target = _child(unit, "target")
        if not _is_part(source):
            target = self._with_target(unit, new)
        else:
            if target is None or not any(map(_is_part, target.iter())):
                divided = next(one for one in ancestors(source) if local_name(one) == "seg-source")
                target = self._with_target(unit, deepcopy(divided))
            parts = [part for part in target.iter() if _is_part(part)]
            old = next((part for part in parts if part.get("mid") == source.get("mid")), None)
            if old is None:
                new.tail = None
                parts[-1].addnext(new)
            else:
                _replace(old, new)
        # Without a state, tools may take a 1.2 target as reviewed, a 2.0 segment as untranslated.
        (unit if local_name(unit) == "segment" else target).set("state", "translated")

    def _with_target(self, unit: etree._Element, target: etree._Element) -> etree._Element:
        """Makes an element the target of a unit."""
        target.tag = etree.QName(etree.QName(unit).namespace, "target").text
        if target.get(LANGUAGE):
            target.set(LANGUAGE, self.reading.languages()[1])
        old, before = _child(unit, "target"), _child(unit, "seg-source")
        if old is not None:
            _replace(old, target)
        else:
            next(one for one in (before, _child(unit, "source")) if one is not None).addnext(target)
        return target


def _replace(old: etree._Element, new: etree._Element) -> None:
    """Replaces an element; its attributes stay."""
    for attribute, value in old.attrib.items():
        new.set(attribute, value)
    new.tail = old.tail
    parent = old.getparent()
    assert parent is not None
    parent.replace(old, new)


def _sources(root: etree._Element) -> Iterator[etree._Element]:
    """Yields the sources, or their parts ``<mrk mtype="seg">``, without a translation."""
    for unit in root.iter(etree.Element):
        if local_name(unit) not in SEGMENTS or any(one.get("translate") == "no" for one in ancestors(unit)):
            continue
        source, target, divided = (_child(unit, name) for name in ("source", "target", "seg-source"))
        if source is None:
            continue
        parts = [] if divided is None else [part for part in divided.iter() if _is_part(part)]
        done = {} if target is None else {part.get("mid"): part for part in target.iter() if _is_part(part)}
        if parts and (done or target is None or _is_untranslated(source, target)):
            for part in parts:
                own = done.get(part.get("mid"))
                if own is None or _is_untranslated(part, own):
                    yield part
        elif target is None or _is_untranslated(source, target):
            yield source


def _is_part(element: etree._Element) -> bool:
    return local_name(element) == "mrk" and element.get("mtype") == "seg"


def _is_untranslated(source: etree._Element, target: etree._Element) -> bool:
    """Returns whether a target is empty, or a copy of the source with an initial state."""
    text, copied = ("".join(map(str, element.itertext())).strip() for element in (target, source))
    if not text:
        return True
    states = [one.get("state") for one in ancestors(target) if local_name(one) in ("target", *SEGMENTS)]
    return text == copied and any(state in UNTRANSLATED or state == "initial" for state in states)


def _child(element: etree._Element, name: str) -> Optional[etree._Element]:
    return next((child for child in element if local_name(child) == name), None)


def _starts_unit(source: etree._Element) -> bool:
    """Returns whether a source is in the first segment of its unit, or the first part of its source."""
    if _is_part(source):
        divided = next(one for one in ancestors(source) if local_name(one) == "seg-source")
        return source is next(filter(_is_part, divided.iter()))
    segment = source.getparent()
    if segment is None or local_name(segment) != "segment":
        return True
    return all(local_name(before) != "segment" for before in segment.itersiblings(preceding=True))


def _is_text(element: etree._Element) -> bool:
    protected = element.get("translate") == "no" or element.get("mtype") == "protected"
    return local_name(element) in AROUND_TEXT and not protected
