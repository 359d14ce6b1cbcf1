"""HTML pages (.html): text between tags; not a character of the tags changes."""

import html
import re
from typing import Dict, Iterator, List, Optional, Sequence, Union

from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import NAME, Marked, Tag, Token, tags_of
from docnmt_fairseq.translate.formats.units import Gap

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
UNTRANSLATED = re.compile(r"""\stranslate\s*=\s*["']?no["'\s>]""", re.IGNORECASE)


@register("html")
class Html(WholeFile):
    """Paragraphs, headings, cells and the like, with the markup in them."""

    help = "HTML; script, style, pre, code and what says translate=no stays"
    endings = (".html", ".htm", ".xhtml")

    def parse(self, content: bytes, name: str) -> Parsed:
        """See :class:`WholeFile`."""
        parts = list(_parts(decode(content, name)))
        marked = [part for part in parts if isinstance(part, Marked)]

        def render(pieces: List[Optional[List[str]]]) -> bytes:
            new = iter(pieces)
            return "".join(part.render(next(new)) if isinstance(part, Marked) else part for part in parts).encode()

        return Parsed([one.unit() for one in marked], render)


def _parts(text: str) -> Iterator[Union[str, Marked]]:
    """What is no text for readers, and the texts in between."""
    tags = list(tags_of(text, RAW))
    ends = _ends(tags)
    tokens: List[Token] = []
    behind = number = 0
    while number < len(tags):
        first = number
        number = ends.get(number, number) + 1 if _is_kept(text, tags[first]) else number + 1
        start, end = tags[first].start, tags[number - 1].end
        if start > behind:
            tokens.append(Token(text[behind:start]))
        behind = end
        if tags[first].name in INLINE or not tags[first].name:
            tokens.append(Token(text[start:end], tags[first].gap if number == first + 1 else Gap.OBJECT))
            continue
        if tokens:
            yield _marked(tokens)
            tokens = []
        yield text[start:end]
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
