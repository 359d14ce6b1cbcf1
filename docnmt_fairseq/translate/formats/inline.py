"""Text with markup in it, as a unit and back: tags are found, kept to the letter, and put back between the pieces."""

import re
from dataclasses import dataclass
from typing import Callable, Container, Iterable, Iterator, List, Optional, Tuple

from docnmt_fairseq.translate.formats.units import Gap, Unit

NAME = re.compile(r"</?([A-Za-z][^\s/>]*)")
ATTRIBUTE = re.compile(r"""[^>=]*(?:=\s*(?:"[^"]*"|'[^']*')?)?""")
VOID = frozenset((
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip


@dataclass(frozen=True)
class Token:
    """A stretch of a file: text, if there is no gap, or what stands in a gap."""

    raw: str
    gap: Optional[Gap] = None


def same(text: str) -> str:
    """The text itself."""
    return text


class Marked:
    """Text with markup.

    Args:
        tokens: one after the other they are the text of the file.
        plain: what a reader sees of raw text, e.g. characters for entities.
        escape: raw text for what a reader is to see.

    Attributes:
        pieces: what a reader sees between the gaps.
        gaps: between the pieces.
    """

    def __init__(
        self, tokens: Iterable[Token], plain: Callable[[str], str] = same, escape: Callable[[str], str] = same
    ):
        self._raw, self._tags, self.gaps, self._escape = [""], [""], [], escape
        for token in tokens:
            if token.gap is None:
                self._raw[-1] += token.raw
            else:
                self._raw.append("")
                self._tags.append(token.raw)
                self.gaps.append(token.gap)
        self.pieces = [plain(raw) for raw in self._raw]

    def unit(self, new_paragraph: bool = True) -> Unit:
        """The text as a unit."""
        return Unit(self.pieces, self.gaps, new_paragraph)

    def render(self, pieces: Optional[List[str]]) -> str:
        """The text with other pieces between its markup; None: as it was."""
        raw = self._raw
        if pieces is not None:
            raw = [old if new == text else self._escape(new) for new, text, old in zip(pieces, self.pieces, self._raw)]
        return "".join(tag + text for tag, text in zip(self._tags, raw))


@dataclass(frozen=True)
class Tag:
    """A tag, a comment, or another mark between < and >.

    Attributes:
        start, end: its place in the text.
        name: of the element, lower case; "" where it is no tag.
        gap: of what kind it is.
    """

    start: int
    end: int
    name: str
    gap: Gap


def tags_of(text: str, raw: Container[str] = ()) -> Iterator[Tag]:
    """The tags of HTML or the like, with comments, declarations and processing instructions, in time linear in length.

    A < that begins none of them, or one that nothing ends, is text.

    Args:
        text: that they are in.
        raw: elements in which there are no tags but the one that ends them.
    """
    place = text.find("<")
    while place >= 0:
        tag = _special(text, place) if text[place + 1 : place + 2] in ("!", "?") else _tag(text, place)
        if tag is None and NAME.match(text, place):
            return  # it would go on to the end of the text
        if tag is not None:
            yield tag
        place = place + 1 if tag is None else tag.end
        if tag is not None and tag.gap is Gap.OPEN and tag.name in raw:
            end = re.compile(f"</{re.escape(tag.name)}(?=[\\s/>])", re.IGNORECASE).search(text, place)
            place = len(text) if end is None else end.start()
        place = text.find("<", place)


def _special(text: str, start: int) -> Tag:
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


def tokens_between(text: str, marks: Iterable[Tuple[int, int, Gap]]) -> Iterator[Token]:
    """A text's tokens, from the places of what is no text in it; of two that overlap the first or longer one counts."""
    behind = 0
    for start, end, gap in sorted(marks, key=lambda mark: (mark[0], -mark[1])):
        if start < behind:
            continue
        if start > behind:
            yield Token(text[behind:start])
        yield Token(text[start:end], gap)
        behind = end
    if behind < len(text):
        yield Token(text[behind:])
