"""Word documents (.docx): text of paragraphs, tables, text boxes, headers, footers, notes, comments and drawings.

Results of fields stay, unless they are links. Of alternative content for older programs the first form is translated;
the others get the same translation if they have the same text, as the text boxes of Word do.
"""

import re
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from lxml import etree

from docnmt_fairseq.translate.formats.archive import Archive
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, register
from docnmt_fairseq.translate.formats.inline import ADDRESSES, Mark, is_note, objects_in
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.xml_text import AttributeSlot, Slot, Slots, local_name, parse_xml, xml_bytes

TAGS_PER_SENTENCE = 100  # including end tags; Word writes some tens
MAIN = "word/document.xml"  # default
RELATIONS = "_rels/.rels"
PARTS = re.compile(
    r"word/(header\d*|footer\d*|footnotes|endnotes|comments|charts/chart(?:Ex)?\d*|diagrams/(data|drawing)\d*)\.xml"
)
WORD = (  # transitional and strict
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
DRAWING = (  # of charts and SmartArt
    "http://schemas.openxmlformats.org/drawingml/2006/main",
    "http://purl.oclc.org/ooxml/drawingml/main",
)
DESCRIPTIONS = ("descr", "title")  # of pictures and other drawings
LABELS = ("strCache", "strLit", "lvl")  # of series and categories of a chart
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
ENDS_TEXT = frozenset(("tab", "ptab", "br", "cr"))
NO_TEXT = frozenset(("moveFrom", "del", "rt"))  # tracked deletions; ruby
IN_TEXT = frozenset((
    "drawing", "pict", "object", "sym", "noBreakHyphen", "softHyphen", "footnoteReference", "endnoteReference",
    "commentReference", "fldChar", "annotationRef", "footnoteRef", "endnoteRef", "pgNum",
))  # fmt: skip


@register("docx")
class Docx(Archive):
    """Paragraphs; markup of runs is projected onto the translation."""

    help = "Word documents: text, tables, text boxes, headers, notes, comments, charts, SmartArt, alternative texts"
    endings = (".docx",)

    def parts(self, contents: Mapping[str, bytes], name: str) -> Dict[str, Parsed]:
        main = _main(contents.get(RELATIONS), name)
        read = {part: text for part, text in contents.items() if part == main or PARTS.fullmatch(part)}
        self.reading.limits.check(sum(text.count(b"<") for text in read.values()), "tags", name, TAGS_PER_SENTENCE)
        ordered = [main, *sorted(read.keys() - {main})]
        return {part: _parsed(contents[part], f"{name}: {part}") for part in ordered}


def _parsed(content: bytes, name: str) -> Parsed:
    """Parses a part."""
    tree, walk = parse_xml(content, name), _Walk()
    walk.visit(tree.getroot())
    walk._end()

    def render(pieces: List[Pieces]) -> bytes:
        rest = iter(pieces)
        for slots, _ in walk.texts:
            slots.fill(rest)
            for slot in slots.slots:
                _keep_space(slot)
        for original, copy in walk.copies:
            copy.text = original.text
            _keep_space(copy)
        return xml_bytes(tree, content)

    return Parsed([one for slots, new_paragraph in walk.texts for one in slots.segments(new_paragraph)], render)


def _main(relations: Optional[bytes], name: str) -> str:
    """Returns the name of the main part, from the relations of the file."""
    if relations is not None:
        for relation in parse_xml(relations, f"{name}: {RELATIONS}").getroot():
            if str(relation.get("Type")).endswith("/officeDocument") and relation.get("Target"):
                return str(relation.get("Target")).removeprefix("/")
    return MAIN


def _addresses_in(text: str) -> Iterator[Mark]:
    return objects_in(text, *ADDRESSES)


def _keep_space(slot: Slot) -> None:
    if slot.text != slot.text.strip() and _namespace(slot.element) in WORD:
        slot.element.set(SPACE, "preserve")


def _namespace(element: etree._Element) -> str:
    return str(etree.QName(element).namespace)


class _Walk:
    """Traversal of a part in reading order. A text box inside a paragraph has separate paragraphs.

    Args:
        fields: codes of the open fields.

    Attributes:
        texts: texts between tabs, line breaks and paragraphs, and whether each starts a paragraph.
        copies: slots of the texts with their counterparts in alternative forms.
    """

    def __init__(self, fields: Sequence[Sequence[str]] = ()):
        self.texts: List[Tuple[Slots, bool]] = []
        self.copies: List[Tuple[Slot, Slot]] = []
        self.seen: List[Slot] = []  # all slots but those of copies
        self.slots: Optional[Slots] = None  # of the current text
        self.gap = Gap.OPEN  # since its last slot
        self.begins = True
        self.fields = [list(field) for field in fields]

    def visit(self, element: etree._Element) -> None:
        """Visits an element and its content."""
        name = local_name(element)
        if name in NO_TEXT:
            return
        own = bool(name) and _namespace(element) in (*WORD, *DRAWING)
        if name == "v" and element.xpath("local-name(../..)") in LABELS:
            self.texts.append((Slots(Slot(element)), True))
        if name == "docPr":
            texts = (AttributeSlot(element, attribute=key) for key in DESCRIPTIONS if element.get(key))
            self.texts += [(Slots(slot), True) for slot in texts]
        if own and name == "p":
            outer = self.slots, self.gap, self.begins
            self.slots, self.gap, self.begins = None, Gap.OPEN, True
            self._children(element)
            self._end()
            self.slots, self.gap, self.begins = outer
        elif own and name == "t":
            self._text(element)
        elif own and name in ENDS_TEXT and element.xpath("local-name(..)") == "r":
            self._end()
        elif own and name == "fldSimple":
            self.fields.append([_attribute(element, "instr")])
            self._children(element)
            self.fields.pop()
        else:
            if own:
                self._field(element, name)
            if name in IN_TEXT or (name and not own):
                self.gap = Gap.OBJECT
            if name == "AlternateContent":
                self._forms(element)
            else:
                self._children(element)

    def _forms(self, element: etree._Element) -> None:
        """Visits the first of alternative forms, and of the others what differs."""
        forms = [child for child in element if local_name(child)]
        before = len(self.seen)
        for first in forms[:1]:
            self._children(first)
        shown = self.seen[before:]
        for other in forms[1:]:
            walk = _Walk(self.fields)
            walk._children(other)
            walk._end()
            if [slot.text for slot in walk.seen] == [slot.text for slot in shown]:
                self.copies += zip(shown, walk.seen)
            else:
                self.texts += walk.texts
            self.copies += walk.copies

    def _children(self, element: etree._Element) -> None:
        for child in element:
            self.visit(child)

    def _text(self, element: etree._Element) -> None:
        if any("".join(field).split()[:1] != ["HYPERLINK"] for field in self.fields):
            self.gap = Gap.OBJECT
            return
        slot = Slot(element)
        before = "" if self.slots is None else "".join(other.text for other in self.slots.slots[-8:])
        is_raised = bool(element.xpath("../*[local-name()='rPr']/*[local-name()='vertAlign']/@*[.='superscript']"))
        if is_raised and is_note(before, slot.text, self.gap is not Gap.OBJECT):
            self.gap = Gap.OBJECT
            return
        self.seen.append(slot)
        if self.slots is None:
            self.slots = Slots(slot, _addresses_in)
        else:
            self.slots.add(slot, self.gap)
        self.gap = Gap.OPEN

    def _end(self) -> None:
        """Ends the current text."""
        if self.slots is not None:
            self.texts.append((self.slots, self.begins))
            self.begins = False
        self.slots, self.gap = None, Gap.OPEN

    def _field(self, element: etree._Element, name: str) -> None:
        if name == "instrText" and self.fields:
            self.fields[-1].append(element.text or "")
        elif name == "fldChar":
            kind = _attribute(element, "fldCharType")
            if kind == "begin":
                self.fields.append([])
            elif kind == "end" and self.fields:
                self.fields.pop()


def _attribute(element: etree._Element, name: str) -> str:
    """Returns the value of an attribute in any namespace; "" if it is missing."""
    return next((str(value) for key, value in element.attrib.items() if etree.QName(key).localname == name), "")
