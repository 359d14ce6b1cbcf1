"""Text with inline markup as a segment and back: tags are found, kept literally, and put back between the pieces."""

import re
from dataclasses import dataclass
from typing import Callable, Container, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.segments import Segment

NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
ATTRIBUTE = re.compile(  # of HTML, or of JSX with braces
    r"""[^>=]*(?:=\s*(?:"[^"]*"|'[^']*'|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})?)?"""
)
CODE = re.compile(r"<\?(?:php\b|=)")  # which may contain >
VOID = frozenset((
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip

# Elements with content that is not translated.
KEPT = frozenset((
    "script", "style", "pre", "textarea", "svg", "math", "template", "object", "iframe", "xmp", "plaintext",
    "code", "kbd", "samp", "var", "rt", "rp",
))  # fmt: skip
NO_TEXT = "notranslate|material-icons|material-symbols"  # classes
UNTRANSLATED = re.compile(
    r"""\stranslate\s*=\s*["']?no["'\s>]"""
    r"""|\sclass\s*=\s*(?:"[^"]*\b(?:%s)\b|'[^']*\b(?:%s)\b|(?:%s)[\s>])""" % ((NO_TEXT,) * 3),
    re.IGNORECASE,
)

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


def ends_of(tags: Sequence[Tag]) -> Dict[int, int]:
    """Returns the number of the end tag of each start tag."""
    ends: Dict[int, int] = {}
    open_tags: Dict[str, List[int]] = {}
    for number, tag in enumerate(tags):
        if tag.gap is Gap.OPEN:
            open_tags.setdefault(tag.name, []).append(number)
        elif tag.gap is Gap.CLOSE and open_tags.get(tag.name):
            ends[open_tags[tag.name].pop()] = number
    return ends


def is_kept(text: str, tag: Tag) -> bool:
    """Returns whether the content of an element is not translated."""
    if tag.gap is not Gap.OPEN:
        return False
    return tag.name in KEPT or UNTRANSLATED.search(text, tag.start, tag.end) is not None


def marks_in(text: str, *objects: "re.Pattern[str]") -> List[Mark]:
    """Returns the tags of a text, its addresses and note marks, and matches of patterns; they may overlap."""
    return [*_elements_in(text), *notes_in(text), *objects_in(text, *ADDRESSES, *objects)]


def _elements_in(text: str) -> Iterator[Mark]:
    """Yields the tags; an element that is not translated is a single object."""
    tags = list(tags_of(text))
    ends = ends_of(tags)
    for number, tag in enumerate(tags):
        if number in ends and is_kept(text, tag):
            yield tag.start, tags[ends[number]].end, Gap.OBJECT
        yield tag.start, tag.end, tag.gap


def objects_in(text: str, *objects: "re.Pattern[str]") -> Iterator[Mark]:
    """Yields the matches of patterns."""
    for pattern in objects:
        for found in pattern.finditer(text):
            yield *found.span(), Gap.OBJECT


# --- Addresses and notes ---

# Characters that end an address, also of Han text.
_ENDS = r"""\s<>()\[\]`*"\0\3\u3000-\u9fff\uff00-\uffef"""
_LAST = rf"""(?:[^{_ENDS}.,;:!?'_]|\([^\s<>()]*\))"""  # last character
FILES = (
    "bat|bmp|cfg|conf|cpp|cs|css|csv|dll|docx?|env|exe|gif|go|gz|hpp|html?|ini|ipynb|java|jpe?g|jsx?|json|kt|log|mdx?|"
    "mp[34]|odt|pdf|php|png|pot?|pptx?|ps1|py|rb|rs|rst|sass|scss|sh|sql|srt|svg|tar|toml|tsv|tsx?|txt|vue|wav|webp|"
    "xlf|xlsx?|xml|ya?ml|zip"
)
ADDRESSES = (
    # URL, e-mail address, path of Windows
    re.compile(
        rf"(?<![A-Za-z])(?:(?:https?|ftp)://|www\.)(?:[^{_ENDS}]|\([^\s<>()]*\))*{_LAST}"
        r"""|(?<![\w.+-])[\w.+-]+@\w[\w-]*(?:\.\w[\w-]*)+|\b[A-Za-z]:\\[^\s<>"|?*]*\w"""
    ),
    # domain, path, file name; but Node.js is a name
    re.compile(
        rf"(?<![\w.@/-])(?:[a-z\d-]+\.)+(?:com|dev|edu|eu|gov|io|net|org)(?![\w-]|\.\w)(?:/(?:[^{_ENDS}]*{_LAST})?)?"
        r"|(?<![\w.@/-])(?:~/|\.{1,2}/|/(?=[\w.-]+/))[\w.@-]+(?:/[\w.@-]+)*(?<![.-])/?"
        rf"|(?<![\w.@/-])(?![A-Z][a-z]+\.js\b)(?:[\w.-]+/)*[\w.-]*\w\.(?:{FILES})(?![\w-]|[./]\w)",
        re.ASCII,
    ),
)
RAISED = re.compile(
    r"<sup\b[^<>]*>(.{0,300}?)</sup\s*>|(?<=[^\s>])<a\b[^<>]*>([\[(]?\d{1,4}[\])]?)</a\s*>", re.IGNORECASE | re.DOTALL
)
MARKUP = re.compile(r"<[^<>]*>")
# Of a power, unit or abbreviation: m<sup>2</sup>
BASE = re.compile(r"(?:(?<!\d)\d{1,3}|(?<![^\W_])[^\W\d_\u3040-\u9fff]{1,2})\Z")
NUMBER = re.compile(r"[-+\u2212\u2013]?\w+[-+\u2212]?")


def notes_in(text: str) -> Iterator[Mark]:
    """Yields the marks of notes: raised text or the link of a number directly after a word or punctuation."""
    for found in RAISED.finditer(text):
        before = text[max(found.start() - 200, 0) : found.start()]
        raised = MARKUP.sub("", found[1] or found[2])
        is_first = found[1] is None or not before.endswith("</sup>")
        if is_note(MARKUP.sub("", before), raised, is_first):
            yield *found.span(), Gap.OBJECT


def is_note(before: str, raised: str, is_first: bool = True) -> bool:
    """Returns whether raised text is the mark of a note, not an exponent.

    Args:
        before: text before it.
        raised: raised text.
        is_first: it does not follow other raised text.
    """
    if is_first and BASE.search(before) and NUMBER.fullmatch(raised):
        return False
    return not before[-1:].isspace() if before else not any(map(str.isalpha, raised))
