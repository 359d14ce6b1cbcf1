"""Text in elements of XML: where it is, and what stands between."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Tuple, cast

from lxml import etree

from docnmt_fairseq.corpus.xml import SAFE, line_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.inline import Marked, tokens_between
from docnmt_fairseq.translate.formats.units import Gap, Unit

IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
DECLARATION = re.compile(rb"<\?xml[^>]*\?>\s*")
DEEPEST = 200  # elements in each other

Marks = Callable[[str], Iterable[Tuple[int, int, Gap]]]


@dataclass
class Slot:
    """A place that holds text: an element's beginning, or what follows the element."""

    element: etree._Element
    tail: bool = False

    @property
    def text(self) -> str:
        """What it holds."""
        return str((self.element.tail if self.tail else self.element.text) or "")

    @text.setter
    def text(self, text: str) -> None:
        if self.tail:
            self.element.tail = text
        else:
            self.element.text = text


class Slots:
    """Text in several places, with markup between.

    Args:
        first: of the places.
        marks: what in a place's text is no text, as in :func:`tokens_between`.

    Attributes:
        slots: the places, in reading order.
        gaps: between them.
    """

    def __init__(self, first: Slot, marks: Marks = lambda text: ()):
        self._marks = marks
        self.slots: List[Slot] = [first]
        self.gaps: List[Gap] = []

    def add(self, slot: Slot, gap: Gap) -> None:
        """Adds the next place, and what stands before it."""
        self.slots.append(slot)
        self.gaps.append(gap)

    def unit(self, new_paragraph: bool = True) -> Unit:
        """The text as a unit."""
        marked = [self._marked(slot) for slot in self.slots]
        gaps = list(marked[0].gaps)
        for gap, own in zip(self.gaps, marked[1:]):
            gaps += [gap, *own.gaps]
        return Unit([piece for own in marked for piece in own.pieces], gaps, new_paragraph)

    def fill(self, pieces: Optional[Sequence[str]]) -> None:
        """Gives every place its new text, without characters that XML cannot hold; None: leaves all as it is."""
        if pieces is None:
            return
        rest = iter(pieces)
        for slot in self.slots:
            own = self._marked(slot)
            text = own.render(list(islice(rest, len(own.pieces))))
            if slot.text != text:
                slot.text = IMPOSSIBLE.sub("", text)

    def _marked(self, slot: Slot) -> Marked:
        text = slot.text
        return Marked(tokens_between(text, self._marks(text)) if text else ())


def slots_within(
    element: etree._Element, is_text: Callable[[etree._Element], bool], marks: Marks = lambda text: ()
) -> Slots:
    """The places of text in an element.

    Args:
        element: all of it.
        is_text: whether the inside of an element below it is text, too.
        marks: what in the text of a place is none, see :class:`Slots`.
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
    """A file of XML, without what could read other files or blow up.

    Raises:
        InputError: it is not well-formed, deeper than 200 levels, or declares entities.
    """
    if b"<!ENTITY" in content or "<!ENTITY".encode("utf-16-le") in content or "<!ENTITY".encode("utf-16-be") in content:
        raise InputError(f"{name}: declares entities, which are not expanded; write their text itself")
    try:
        root = etree.fromstring(content, etree.XMLParser(**SAFE))
    except etree.XMLSyntaxError as error:
        reason = f"elements more than {DEEPEST} deep" if "Excessive depth" in error.msg else error.msg
        raise InputError.at(name, error.lineno or 1, f"not well-formed XML: {reason}") from error
    except (ValueError, LookupError) as error:
        raise InputError(f"{name}: not well-formed XML: {error}") from error
    tree = root.getroottree()
    _check_depth(tree, name)
    for entity in root.iter(etree.Entity):
        raise InputError.at(name, line_of(entity), f"entity {entity.text} is not expanded; write its text itself")
    return tree


def _check_depth(tree: etree._ElementTree, name: str) -> None:
    depth = 0
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > DEEPEST:
            raise InputError.at(name, line_of(element), f"elements more than {DEEPEST} deep")


def xml_bytes(tree: etree._ElementTree, original: bytes) -> bytes:
    """The file of a tree, in the encoding that it had, and with the declaration that it had."""
    encoding = tree.docinfo.encoding or "UTF-8"
    declaration = DECLARATION.match(original)
    content = cast(bytes, etree.tostring(tree, encoding=encoding, xml_declaration=False))
    if declaration is None:  # there is none, or one in UTF-16
        return cast(bytes, etree.tostring(tree, encoding=encoding))
    return declaration[0] + content + (b"\n" if original.endswith(b"\n") else b"")


def local_name(element: etree._Element) -> str:
    """An element's name without its namespace; "" of comments and the like."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def ancestors(element: etree._Element) -> Iterator[etree._Element]:
    """An element and those around it, outwards."""
    yield element
    yield from element.iterancestors()
