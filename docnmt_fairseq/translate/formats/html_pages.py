"""HTML pages (.html): text, and readable attributes; the rest of a tag does not change."""

import html
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import NAME, Mark, Marked, Tag, tags_of
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.segments import Segment

# Inline elements; any other one ends a text.
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "label", "mark", "meter", "q", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "wbr", "code", "kbd", "samp", "var", "output",
))  # fmt: skip
# Elements with content that is not translated.
KEPT = frozenset((
    "script", "style", "pre", "textarea", "svg", "math", "template", "object", "iframe", "xmp", "plaintext",
    "code", "kbd", "samp", "var",
))  # fmt: skip
RAW = frozenset(("script", "style", "textarea", "xmp", "iframe"))  # without tags inside
TAGS_PER_SENTENCE = 30
DECLARES = 2**14  # bytes that contain the declaration of the character set
CHARSET = re.compile(r"""\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
# Read as windows-1252 by browsers.
AS_BROWSERS = dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii"), "windows-1252")
# With its optional value.
ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>=`]+))?""")
READ = frozenset((
    "alt", "title", "placeholder", "label", "summary", "aria-label", "aria-description", "aria-placeholder",
    "aria-roledescription", "aria-valuetext",
))  # fmt: skip
DESCRIPTIONS = frozenset(("description", "og:title", "og:description", "twitter:title", "twitter:description"))
BUTTONS = frozenset(("button", "submit", "reset"))
UNTRANSLATED = re.compile(r"""\stranslate\s*=\s*["']?no["'\s>]""", re.IGNORECASE)


@register("html")
class Html(WholeFile):
    """Texts with inline markup, each followed by the readable attributes inside."""

    help = "HTML with readable attributes; script, style, pre, code and translate=no stay"
    endings = (".html", ".htm", ".xhtml")

    def parse(self, content: bytes, name: str) -> Parsed:
        charset = _charset(content)
        text = decode(content, name, charset)
        if text.encode(charset) != content:
            raise InputError(f"{name}: {charset} does not encode the page as it was; convert the file to UTF-8")
        self.reading.limits.check(text.count("<"), "tags", name, TAGS_PER_SENTENCE)
        parts = list(_parts(text))
        texts = list(_texts(parts, list(_values(text))))

        def render(pieces: List[Pieces]) -> bytes:
            new = list(zip(texts, pieces))
            values = [(one, own[0]) for one, own in new if isinstance(one, Value) and own is not None]
            changed = list(_parts(_with_values(text, values)))
            # With unbalanced quotation marks, new values could change the tags.
            found = changed if list(map(_shape, changed)) == list(map(_shape, parts)) else parts
            of_texts = iter([own for one, own in new if isinstance(one, Marked)])
            page = "".join(part.render(next(of_texts)) if isinstance(part, Marked) else part for part in found)
            return page.encode(charset, "xmlcharrefreplace")  # scripts and styles, without references, do not change

        return Parsed([one.segment() for one in texts], render)


def _charset(content: bytes) -> str:
    """Returns the character set of a page: UTF-8 if it is valid UTF-8 or declares nothing, or the declared one."""
    if not content.isascii():
        try:
            content.decode()
            return "UTF-8"  # a declaration in an HTTP header would overrule that of the page
        except UnicodeDecodeError:
            pass
    head = content[:DECLARES].decode("latin-1")
    for tag in tags_of(head, RAW):
        declares = tag.name == "meta" or head.startswith("<?xml", tag.start)
        found = CHARSET.search(head, tag.start, tag.end) if declares else None
        if found:
            charset = found[1].lower()
            return "UTF-8" if charset.startswith(("utf-16", "utf-32")) else AS_BROWSERS.get(charset, found[1])
    return "UTF-8"


@dataclass(frozen=True)
class Value:
    """Value of a readable attribute: its span in the file, and the value with quotation marks."""

    start: int
    end: int
    written: str

    @property
    def text(self) -> str:
        """Readable text."""
        return html.unescape(self.written[1:-1] if self.written[0] in "\"'" else self.written)

    def segment(self) -> Segment:
        """Returns the text as a segment."""
        return Segment([self.text])

    def render(self, text: str) -> str:
        """Returns the value with another text."""
        return self.written if text == self.text else f'"{html.escape(text)}"'


def _texts(parts: Sequence[Union[str, Marked]], values: Sequence[Value]) -> Iterator[Union[Marked, Value]]:
    """Yields the texts, each followed by the attributes in it or before the next one."""
    place = number = 0
    for part in parts:
        if isinstance(part, Marked):
            yield part
        place += len(part.render(None) if isinstance(part, Marked) else part)
        while number < len(values) and values[number].start < place:
            yield values[number]
            number += 1


def _shape(part: Union[str, Marked]) -> object:
    return (part.pieces, part.gaps) if isinstance(part, Marked) else None


def _with_values(text: str, values: Sequence[Tuple[Value, str]]) -> str:
    """Returns the file with new values of attributes."""
    found, behind = [], 0
    for value, new in values:
        found += [text[behind : value.start], value.render(new)]
        behind = value.end
    return "".join([*found, text[behind:]])


def _values(text: str) -> Iterator[Value]:
    """Yields the readable attributes."""
    for tag, _, _ in _top_tags(text):
        if tag.gap is Gap.CLOSE or not tag.name or UNTRANSLATED.search(text, tag.start, tag.end):
            continue
        attributes = [one for one in ATTRIBUTE.finditer(text, tag.start + 1 + len(tag.name), tag.end) if one[2]]
        others = {one[1].lower(): one[2].strip("\"'").lower() for one in attributes}
        for one in attributes:
            if _is_read(tag.name, one[1].lower(), others):
                yield Value(*one.span(2), one[2])


def _is_read(element: str, attribute: str, attributes: Mapping[str, str]) -> bool:
    """Returns whether an attribute is readable."""
    if element == "meta":
        return attribute == "content" and bool(
            DESCRIPTIONS & {attributes.get("name", ""), attributes.get("property", "")}
        )
    if element == "input" and attribute == "value":
        return attributes.get("type") in BUTTONS
    return attribute in READ and element not in ("link", "style", "script")


def _top_tags(text: str) -> Iterator[Tuple[Tag, int, Gap]]:
    """Yields the tags outside of untranslated elements, with the end of the tag or element and its gap."""
    tags = list(tags_of(text, RAW))
    ends = _ends(tags)
    number = 0
    while number < len(tags):
        tag = tags[number]
        last = ends.get(number, number) if _is_kept(text, tag) else number
        yield tag, tags[last].end, tag.gap if last == number else Gap.OBJECT
        number = last + 1


def _parts(text: str) -> Iterator[Union[str, Marked]]:
    """Yields untranslated parts of the file, and the texts in between."""
    marks: List[Mark] = []
    first = behind = 0  # start of the current text, end of the last tag
    for tag, end, gap in _top_tags(text):
        behind = end
        if tag.name in INLINE or not tag.name:
            marks.append((tag.start, end, gap))
            continue
        if first < tag.start:
            yield _marked(text, first, tag.start, marks)
        yield text[tag.start : end]
        marks, first = [], end
    if behind < len(text):
        # A tag without an end continues to the end of the file.
        broken = text.find("<", behind)
        while broken >= 0 and not NAME.match(text, broken):
            broken = text.find("<", broken + 1)
        broken = len(text) if broken < 0 else broken
        yield _marked(text, first, broken, marks)
        yield text[broken:]
    elif first < len(text):
        yield _marked(text, first, len(text), marks)


def _marked(text: str, first: int, end: int, marks: List[Mark]) -> Marked:
    own = [(start - first, stop - first, gap) for start, stop, gap in marks]
    return Marked(text[first:end], own, html.unescape, lambda text: html.escape(text, quote=False))


def _is_kept(text: str, tag: Tag) -> bool:
    """Returns whether the content of an element is not translated."""
    if tag.gap is not Gap.OPEN:
        return False
    return tag.name in KEPT or UNTRANSLATED.search(text, tag.start, tag.end) is not None


def _ends(tags: Sequence[Tag]) -> Dict[int, int]:
    """Returns the end tag of each start tag."""
    ends: Dict[int, int] = {}
    open_tags: Dict[str, List[int]] = {}
    for number, tag in enumerate(tags):
        if tag.gap is Gap.OPEN:
            open_tags.setdefault(tag.name, []).append(number)
        elif tag.gap is Gap.CLOSE and open_tags.get(tag.name):
            ends[open_tags[tag.name].pop()] = number
    return ends
