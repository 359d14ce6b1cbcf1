"""Text with inline markup as a segment and back: tags are found, kept literally, and put back between the pieces."""

import re
from dataclasses import dataclass
from typing import Callable, Container, Iterable, Iterator, List, Optional, Tuple

from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.segments import Segment

NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
ATTRIBUTE = re.compile(r"""[^>=]*(?:=\s*(?:"[^"]*"|'[^']*')?)?""")
CODE = re.compile(r"<\?(?:php\b|=)")  # which may contain >
VOID = frozenset((
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip

Mark = Tuple[int, int, Gap]  # start and end of markup in a text, and its kind


class Marked:
    """Text with markup.

    Args:
        text: raw text.
        marks: spans of its markup; of overlapping ones the first or longer one counts.
        plain: converts raw text to readable text, e.g. entities to characters.
        escape: converts readable text to raw text.

    Attributes:
        pieces: readable text between the gaps.
        gaps: gaps between the pieces.
    """

    def __init__(
        self,
        text: str,
        marks: Iterable[Mark],
        plain: Callable[[str], str] = str,
        escape: Callable[[str], str] = str,
    ):
        self.gaps: List[Gap] = []
        self._raw: List[str] = []
        self._tags, self._escape, behind = [""], escape, 0
        for start, end, gap in sorted(marks, key=lambda mark: (mark[0], mark[0] < mark[1], -mark[1])):
            if start >= behind:
                self._raw.append(text[behind:start])
                self._tags.append(text[start:end])
                self.gaps.append(gap)
                behind = end
        self._raw.append(text[behind:])
        self.pieces = [plain(raw) for raw in self._raw]

    def segment(self, new_paragraph: bool = True) -> Segment:
        """Returns the text as a segment."""
        return Segment(self.pieces, self.gaps, new_paragraph)

    def render(self, pieces: Optional[List[str]]) -> str:
        """Returns the raw text with new pieces between its markup; None: unchanged."""
        raw = self._raw
        if pieces is not None:
            raw = [old if new == text else self._escape(new) for new, text, old in zip(pieces, self.pieces, self._raw)]
        return "".join(tag + text for tag, text in zip(self._tags, raw))


@dataclass(frozen=True)
class Tag:
    """Tag, comment or declaration between < and >."""

    start: int
    end: int
    name: str  # element name in lower case; "" if it is not a tag
    gap: Gap


def tags_of(text: str, raw: Container[str] = ()) -> Iterator[Tag]:
    """Yields the tags, comments, declarations and processing instructions of HTML or XML, in linear time.

    Any other <, or one without its end, is text.

    Args:
        text: text with tags.
        raw: elements that contain no tags except their end tag.
    """
    place = text.find("<")
    while place >= 0:
        tag = _special(text, place) if text[place + 1 : place + 2] in ("!", "?") else _tag(text, place)
        if tag is None and NAME.match(text, place):
            return  # it continues to the end of the text
        if tag is not None:
            yield tag
        place = place + 1 if tag is None else tag.end
        if tag is not None and tag.gap is Gap.OPEN and tag.name in raw:
            end = re.compile(f"</{re.escape(tag.name)}(?=[\\s/>])", re.IGNORECASE).search(text, place)
            place = len(text) if end is None else end.start()
        place = text.find("<", place)


def _special(text: str, start: int) -> Tag:
    if CODE.match(text, start) and (end := text.find("?>", start)) >= 0:
        return Tag(start, end + 2, "", Gap.OBJECT)
    mark, over = ("-->", 4) if text.startswith("<!--", start) else (">", 2)
    mark, over = ("]]>", 9) if text.startswith("<![CDATA[", start) else (mark, over)
    end = text.find(mark, start + over)
    return Tag(start, len(text) if end < 0 else end + len(mark), "", Gap.OBJECT)


def _tag(text: str, start: int) -> Optional[Tag]:
    name = NAME.match(text, start)
    if name is None:
        return None
    place = name.end()
    while place < len(text) and text[place] != ">":
        found = ATTRIBUTE.match(text, place)
        place = found.end() if found and found.end() > place else place + 1
    if place >= len(text):
        return None
    gap = Gap.CLOSE if text[start + 1] == "/" else Gap.OPEN
    if gap is Gap.OPEN and (text[place - 1] == "/" or name[1].lower() in VOID):
        gap = Gap.OBJECT
    return Tag(start, place + 1, name[1].lower(), gap)


def marks_in(text: str, *objects: "re.Pattern[str]") -> List[Mark]:
    """Returns the tags of a text, its addresses and note marks, and matches of patterns; they may overlap."""
    tags = [(tag.start, tag.end, tag.gap) for tag in tags_of(text)]
    return [*tags, *_notes_in(text), *objects_in(text, ADDRESS, *objects)]


def objects_in(text: str, *objects: "re.Pattern[str]") -> Iterator[Mark]:
    """Yields the matches of patterns."""
    for pattern in objects:
        for found in pattern.finditer(text):
            yield *found.span(), Gap.OBJECT


# --- Addresses and notes ---

# URL, e-mail address, path of Windows.
ADDRESS = re.compile(
    r"""(?<![A-Za-z])(?:(?:https?|ftp)://|www\.)(?:[^\s<>()\[\]`*"\u3000-\u9fff\uff00-\uffef]|\([^\s<>()]*\))*"""
    r"""(?:[^\s<>()\[\]`*.,;:!?"'_\u3000-\u9fff\uff00-\uffef]|\([^\s<>()]*\))"""
    r"""|\b[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+|\b[A-Za-z]:\\[^\s<>"|?*]*\w"""
)
RAISED = re.compile(r"<sup\b[^<>]*>(.{0,300}?)</sup\s*>", re.IGNORECASE | re.DOTALL)
MARKUP = re.compile(r"<[^<>]*>")
BASE = re.compile(r"(?:(?<!\d)\d{1,3}|(?<![^\W_])[^\W\d_]{1,2})\Z")  # of a power, unit or abbreviation: m<sup>2</sup>
NUMBER = re.compile(r"[-+\u2212\u2013]?\w+[-+\u2212]?")


def _notes_in(text: str) -> Iterator[Mark]:
    """Yields the marks of notes: raised text directly after a word or punctuation."""
    for found in RAISED.finditer(text):
        before = text[max(found.start() - 200, 0) : found.start()]
        word = MARKUP.sub("", before)
        is_power = BASE.search(word) and NUMBER.fullmatch(MARKUP.sub("", found[1])) and not before.endswith("</sup>")
        if not is_power and (not word[-1:].isspace() if word else not any(map(str.isalpha, found[1]))):
            yield *found.span(), Gap.OBJECT


# --- Placeholders ---

# Text that a program inserts: {% if x %}, <%= x %>, {{ x }}, %name%, {name}, ${name}, {/* comment */}
TEMPLATE = re.compile(
    r"\{%.*?%\}|<%.*?%>|\{{2,3}[^{}]*\}{2,3}|(?<![\w%])%[A-Za-z_]\w*%(?!\w)|[$#]?\{[^{}\s]*\}|\{/\*.*?\*/\}", re.DOTALL
)
# [shop_name], __count__, @user.Name, :name
NAMED = re.compile(
    r"\[[a-z]+(?:_[a-z]+)+\]|(?<!\w)__\w+?__(?!\w)|(?<![\w@])@[A-Za-z]\w*(?:\.[A-Za-z]\w*)+|(?<!\S):[a-z]\w+\b(?!:)"
)
# Of printf, Python, Objective-C, Qt; not after a digit: 100%ig.
PRINTF = re.compile(
    r"(?<!\d)%(?:\d+\$)?(?:\([^()]*\))?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|L|z|j|t|q)?[a-zA-Z%@]|(?<!\d)%L?\d+"
)
BRACE = re.compile("[{}]")
# With nested braces: {{name}}, and ICU's {n, plural, one {# file} other {# files}}.
NESTED = re.compile(
    r"\{\{|\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal|choice|number|date|time|spellout|ordinal|duration)\b"
)


def marks_of_message(text: str) -> Iterator[Mark]:
    """Yields tags and placeholders of a message of a program, which may overlap."""
    yield from marks_in(text)
    yield from objects_of(text)


def objects_of(text: str) -> Iterator[Mark]:
    """Yields addresses, marks of notes and placeholders, which may overlap."""
    yield from _notes_in(text)
    yield from objects_in(text, ADDRESS, TEMPLATE, NAMED, PRINTF)
    is_open: List[int] = []
    for found in BRACE.finditer(text):
        if found[0] == "{":
            is_open.append(found.start())
        elif is_open and NESTED.match(text, start := is_open.pop()):
            yield start, found.end(), Gap.OBJECT
