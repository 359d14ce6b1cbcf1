"""Text in XML elements as segments and back."""

import re
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, cast

from lxml import etree

from docnmt_fairseq.corpus.xml import SAFE
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Pieces
from docnmt_fairseq.translate.formats.inline import Mark
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.messages import Marks, Message
from docnmt_fairseq.translate.formats.segments import Segment

IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# Stand for elements in a text; not allowed in XML.
GAPS = {Gap.OBJECT: "\0", Gap.OPEN: "\2", Gap.CLOSE: "\3"}
KINDS = {character: gap for gap, character in GAPS.items()}
ELEMENT = re.compile("[\0\2\3]")
DECLARATION = re.compile(rb"<\?xml[^>]*\?>\s*")


@dataclass
class Slot:
    """Place of text: in an element before its first child, or after the element."""

    element: etree._Element
    tail: bool = False

    @property
    def text(self) -> str:
        """Its text."""
        return str((self.element.tail if self.tail else self.element.text) or "")

    @text.setter
    def text(self, text: str) -> None:
        if self.tail:
            self.element.tail = text
        else:
            self.element.text = text


@dataclass
class AttributeSlot(Slot):
    """Value of an attribute."""

    attribute: str = ""

    @property
    def text(self) -> str:
        """Its text."""
        return str(self.element.get(self.attribute) or "")

    @text.setter
    def text(self, text: str) -> None:
        self.element.set(self.attribute, text)


class Slots:
    """Text in several slots with markup in between.

    Args:
        first: first slot.
        marks: returns the spans of markup in a text, in which characters stand for the gaps between slots.

    Attributes:
        slots: slots in reading order.
        gaps: gaps between them.
    """

    def __init__(self, first: Slot, marks: Marks = lambda text: ()):
        self._marks = marks
        self.slots: List[Slot] = [first]
        self.gaps: List[Gap] = []

    def add(self, slot: Slot, gap: Gap) -> None:
        """Adds the next slot, and the gap before it."""
        self.slots.append(slot)
        self.gaps.append(gap)

    def segments(self, new_paragraph: bool = True) -> List[Segment]:
        """Returns the text as segments; a paragraph starts with the first one."""
        return self._message().segments(new_paragraph)

    def fill(self, pieces: Iterator[Pieces]) -> None:
        """Sets the text of every slot, without characters that XML does not allow, to the next pieces."""
        for slot, text in zip(self.slots, ELEMENT.split(self._message().render(pieces))):
            if slot.text != text:
                slot.text = IMPOSSIBLE.sub("", text)

    def _message(self) -> Message:
        gaps = ["", *(GAPS[gap] for gap in self.gaps)]
        text = "".join(gap + slot.text for gap, slot in zip(gaps, self.slots))
        return Message(text, lambda text: [*_elements_in(text), *self._marks(text)])


def _elements_in(text: str) -> Iterator[Mark]:
    return ((*found.span(), KINDS[found[0]]) for found in ELEMENT.finditer(text))


def slots_within(
    element: etree._Element, is_text: Callable[[etree._Element], bool], marks: Marks = lambda text: ()
) -> Slots:
    """Returns the text slots of an element.

    Args:
        element: root of the text.
        is_text: returns whether the content of a descendant is text.
        marks: see :class:`Slots`.
    """
    slots = Slots(Slot(element), marks)
    _add_children(slots, element, is_text)
    return slots


def _add_children(slots: Slots, element: etree._Element, is_text: Callable[[etree._Element], bool]) -> None:
    for child in element:
        if isinstance(child.tag, str) and is_text(child):
            slots.add(Slot(child), Gap.OPEN)
            _add_children(slots, child, is_text)
            slots.add(Slot(child, tail=True), Gap.CLOSE)
        else:
            slots.add(Slot(child, tail=True), Gap.OBJECT)


def parse_xml(content: bytes, name: str) -> etree._ElementTree:
    """Parses XML without entities and network access.

    Raises:
        InputError: it declares entities, whose text would be missing.
    """
    tree = etree.fromstring(content, etree.XMLParser(**SAFE)).getroottree()
    declared: Any = tree.docinfo.internalDTD
    if declared is not None and any(declared.iterentities()):
        raise InputError(f"{name}: declares entities, which are not supported; write out their text")
    return tree


def xml_bytes(tree: etree._ElementTree, original: bytes) -> bytes:
    """Serialises a tree with the encoding and declaration of the original file."""
    encoding = tree.docinfo.encoding or "UTF-8"
    declaration = DECLARATION.match(original)
    content = cast(bytes, etree.tostring(tree, encoding=encoding, xml_declaration=False))
    if declaration is None:  # missing, or in UTF-16
        return cast(bytes, etree.tostring(tree, encoding=encoding))
    return declaration[0] + content + (b"\n" if original.endswith(b"\n") else b"")


def local_name(element: etree._Element) -> str:
    """Returns the name of an element without its namespace; "" for comments."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def ancestors(element: etree._Element) -> Iterator[etree._Element]:
    """Yields an element and its ancestors."""
    yield element
    yield from element.iterancestors()
