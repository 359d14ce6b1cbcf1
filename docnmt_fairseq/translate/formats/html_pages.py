"""HTML pages (.html): text between tags, and attributes that people read; nothing else of a tag changes."""

import html
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import NAME, Marked, Tag, Token, tags_of
from docnmt_fairseq.translate.formats.limits import TAGS_OF_HTML
from docnmt_fairseq.translate.formats.units import Gap, Unit

# Elements that stand in a text; every other one ends it.
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "label", "mark", "meter", "q", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "wbr", "code", "kbd", "samp", "var", "output",
))  # fmt: skip
# What is no text for readers, or is code; of those in a text the inside stays, of the others the text ends.
KEPT = frozenset((
    "script", "style", "pre", "textarea", "svg", "math", "template", "object", "iframe", "xmp", "plaintext",
    "code", "kbd", "samp", "var",
))  # fmt: skip
RAW = frozenset(("script", "style", "textarea", "xmp", "iframe"))  # in which there are no tags
DECLARES = 2**14  # bytes in which the character set must be declared
CHARSET = re.compile(r"""\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
# What browsers take for windows-1252, which has more characters.
AS_BROWSERS = dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii"), "windows-1252")
# With its value, if it has one: so that a name is looked at once.
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
    """Paragraphs, headings, cells and the like, with the markup in them; then the attributes of that markup."""

    help = "HTML, also attributes that people read; script, style, pre, code and what says translate=no stays"
    endings = (".html", ".htm", ".xhtml")

    def parse(self, content: bytes, name: str) -> Parsed:
        """See :class:`WholeFile`."""
        charset = _charset(content)
        text = decode(content, name, charset)
        if text.encode(charset) != content:
            raise InputError(f"{name}: {charset} is not written again as it was; convert the file to UTF-8")
        self.reading.limits.check(text.count("<"), "tags", name, TAGS_OF_HTML)
        parts = list(_parts(text))
        units = list(_units(parts, list(_values(text))))

        def render(pieces: List[Optional[List[str]]]) -> bytes:
            new = list(zip(units, pieces))
            values = [(one, texts[0]) for one, texts in new if isinstance(one, Value) and texts is not None]
            changed = list(_parts(_with_values(text, values)))
            # Where quotation marks are in disorder, other values would make other tags of it.
            found = changed if list(map(_shape, changed)) == list(map(_shape, parts)) else parts
            of_texts = iter([texts for one, texts in new if isinstance(one, Marked)])
            page = "".join(part.render(next(of_texts)) if isinstance(part, Marked) else part for part in found)
            return page.encode(charset, "xmlcharrefreplace")  # scripts and styles, which know no references, stay

        return Parsed([one.unit() for one in units], render)


def _charset(content: bytes) -> str:
    """The character set of a page: what it declares; UTF-8 of one that does not, or is UTF-8 all the same."""
    if not content.isascii():
        try:
            content.decode()
            return "UTF-8"  # a server that says so in a header overrules what pages declare
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
    """What an attribute says to people: where its value is in the file, and the value, quotation marks with it."""

    start: int
    end: int
    written: str

    @property
    def text(self) -> str:
        """What people read."""
        return html.unescape(self.written[1:-1] if self.written[0] in "\"'" else self.written)

    def unit(self) -> Unit:
        """The text as a unit."""
        return Unit([self.text])

    def render(self, text: str) -> str:
        """The value with another text."""
        return self.written if text == self.text else f'"{html.escape(text)}"'


def _units(parts: Sequence[Union[str, Marked]], values: Sequence[Value]) -> Iterator[Union[Marked, Value]]:
    """The texts, each followed by the attributes that stand in it or before the next one."""
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
    """The file with other values of attributes."""
    found, behind = [], 0
    for value, new in values:
        found += [text[behind : value.start], value.render(new)]
        behind = value.end
    return "".join([*found, text[behind:]])


def _values(text: str) -> Iterator[Value]:
    """The attributes that people read."""
    for tag, _, _ in _stretches(text):
        if tag.gap is Gap.CLOSE or not tag.name or UNTRANSLATED.search(text, tag.start, tag.end):
            continue
        attributes = [one for one in ATTRIBUTE.finditer(text, tag.start + 1 + len(tag.name), tag.end) if one[2]]
        others = {one[1].lower(): one[2].strip("\"'").lower() for one in attributes}
        for one in attributes:
            if _is_read(tag.name, one[1].lower(), others):
                yield Value(*one.span(2), one[2])


def _is_read(element: str, attribute: str, attributes: Mapping[str, str]) -> bool:
    """Whether people read an attribute, by the element and its other attributes."""
    if element == "meta":
        return attribute == "content" and bool(
            DESCRIPTIONS & {attributes.get("name", ""), attributes.get("property", "")}
        )
    if element == "input" and attribute == "value":
        return attributes.get("type") in BUTTONS
    return attribute in READ and element not in ("link", "style", "script")


def _stretches(text: str) -> Iterator[Tuple[Tag, int, Gap]]:
    """The tags outside of what stays, each with the end of what stays with it, and the gap that both make."""
    tags = list(tags_of(text, RAW))
    ends = _ends(tags)
    number = 0
    while number < len(tags):
        tag = tags[number]
        last = ends.get(number, number) if _is_kept(text, tag) else number
        yield tag, tags[last].end, tag.gap if last == number else Gap.OBJECT
        number = last + 1


def _parts(text: str) -> Iterator[Union[str, Marked]]:
    """What is no text for readers, and the texts in between."""
    tokens: List[Token] = []
    behind = 0
    for tag, end, gap in _stretches(text):
        if tag.start > behind:
            tokens.append(Token(text[behind : tag.start]))
        behind = end
        if tag.name in INLINE or not tag.name:
            tokens.append(Token(text[tag.start : end], gap))
            continue
        if tokens:
            yield _marked(tokens)
            tokens = []
        yield text[tag.start : end]
    if behind < len(text):
        # A tag that nothing ends is no text: it goes to the end of the file.
        broken = text.find("<", behind)
        while broken >= 0 and not NAME.match(text, broken):
            broken = text.find("<", broken + 1)
        broken = len(text) if broken < 0 else broken
        tokens += [Token(text[behind:broken])]
        yield _marked(tokens)
        yield text[broken:]
    elif tokens:
        yield _marked(tokens)


def _marked(tokens: List[Token]) -> Marked:
    return Marked(tokens, html.unescape, lambda text: html.escape(text, quote=False))


def _is_kept(text: str, tag: Tag) -> bool:
    """Whether the inside of an element stays."""
    if tag.gap is not Gap.OPEN:
        return False
    return tag.name in KEPT or UNTRANSLATED.search(text, tag.start, tag.end) is not None


def _ends(tags: Sequence[Tag]) -> Dict[int, int]:
    """The end tag of every start tag that has one."""
    ends: Dict[int, int] = {}
    open_tags: Dict[str, List[int]] = {}
    for number, tag in enumerate(tags):
        if tag.gap is Gap.OPEN:
            open_tags.setdefault(tag.name, []).append(number)
        elif tag.gap is Gap.CLOSE and open_tags.get(tag.name):
            ends[open_tags[tag.name].pop()] = number
    return ends
