"""Where the markup of a text of Markdown is: rather too much is taken for it, as markup stays to the letter."""

import html
import re
from bisect import bisect_right
from typing import Dict, Iterator, List, Tuple

from docnmt_fairseq.translate.formats.inline import tags_of
from docnmt_fairseq.translate.formats.markdown_dialects import DIALECTS
from docnmt_fairseq.translate.formats.units import Gap

TARGET = r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])?"  # of a link or an image
ADDRESS = r"\bhttps?://[^\s<>()\[\]`*]*[^\s<>()\[\]`*.,;:!?\"'_]"
OBJECTS = (
    re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>"),
    re.compile(ADDRESS),
    re.compile(r"!\[[^\[\]]*\]" + TARGET),
    re.compile(r"\[\^[^\[\]]*\]:?"),  # of a footnote
    *DIALECTS,
)
LINK_END = re.compile(r"\]" + TARGET)
RUN = re.compile(r"\*+|_+|~~")
TICKS = re.compile(r"`+")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
SPECIAL = re.compile(r"[\\`*\[\]<|~]|(?<!\w)#|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
FIRST = re.compile(r"[-+>=]|(?<=\d)[.)](?=\s|$)")
NUMBER = re.compile(r"\d{1,9}(?=[.)](?:\s|$))")

Mark = Tuple[int, int, Gap]


def marks_of(text: str) -> List[Mark]:
    """What is markup, and of what kind; of marks that overlap the first one counts."""
    marks: List[Mark] = list(_code(text))
    text = ESCAPED.sub("..", text)
    marks += [(tag.start, tag.end, tag.gap) for tag in tags_of(text)]
    marks += [(*found.span(), Gap.OBJECT) for pattern in OBJECTS for found in pattern.finditer(text)]
    marks += [(*found.span(), Gap.OPEN) for found in re.finditer(r"\[", text)]
    marks += [(*found.span(), Gap.CLOSE) for found in LINK_END.finditer(text)]
    return [*marks, *_emphasis(text)]


def _code(text: str) -> Iterator[Mark]:
    runs = [found.span() for found in TICKS.finditer(text)]
    places: Dict[int, List[int]] = {}
    for start, end in runs:
        places.setdefault(end - start, []).append(start)
    behind = 0
    for start, end in runs:
        alike = places[end - start]
        following = bisect_right(alike, start)
        escaped = start > 0 and text[start - 1] == "\\"
        if start >= behind and not escaped and following < len(alike):
            behind = alike[following] + end - start
            yield start, behind, Gap.OBJECT


def _emphasis(text: str) -> Iterator[Mark]:
    is_open: Dict[str, bool] = {}
    for found in RUN.finditer(text):
        before = text[max(found.start() - 1, 0) : found.start()] or " "
        after = text[found.end() : found.end() + 1] or " "
        if (before.isspace() and after.isspace()) or (found[0][0] == "_" and before.isalnum() and after.isalnum()):
            continue
        opens = not after.isspace() and (before.isspace() or not before.isalnum())
        closes = not before.isspace() and (after.isspace() or not after.isalnum())
        if opens == closes:
            opens = not is_open.get(found[0], False)
        is_open[found[0]] = opens
        yield found.start(), found.end(), Gap.OPEN if opens else Gap.CLOSE


def plain(raw: str) -> str:
    """What a reader sees of a text without markup."""
    return html.unescape(ESCAPED.sub(r"\1", raw)).replace("\n", " ")


def escape(text: str) -> str:
    """A text in which nothing reads as markup."""
    return SPECIAL.sub(r"\\\g<0>", text)


def escape_first(text: str) -> str:
    """A text that does not read as the beginning of a list, a heading or the like."""
    number = NUMBER.match(text)
    found = FIRST.match(text, number.end() if number else 0)
    return text if found is None else f"{text[: found.start()]}\\{text[found.start() :]}"
