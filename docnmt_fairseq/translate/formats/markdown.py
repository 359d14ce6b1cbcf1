"""Markdown (.md): headings, paragraphs, list items and cells are translated; code, URLs and HTML blocks stay.

markdown-it finds the text, and parses every translation again: if its markup differs from the source, the source stays.
"""

import html
import logging
import re
from dataclasses import InitVar, dataclass, field
from itertools import chain, pairwise
from typing import Any, Callable, Iterator, List, Sequence, Tuple

from docnmt_fairseq.translate.formats.base import ANY_LINE, Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Marked
from docnmt_fairseq.translate.formats.markdown_dialects import (
    addresses_of,
    common_lines,
    letters,
    links_to_other_files,
    titles_of,
)
from docnmt_fairseq.translate.formats.markdown_inline import (
    escape,
    escape_first,
    full_references,
    marks_of,
    parts_of,
    plain,
)

FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\r?\n(?:.*?\n)??(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?:.*?\n)??\+\+\+)[ \t]*(?:\r?\n|\Z)", re.DOTALL
)
HARD_BREAK = re.compile(r"(?:(?<! ) {2,}|\\)$")  # searched once per run of spaces
MARKS = re.compile(r"[\\`*_\[\]<~&|]")  # which take more parsing time than text
LINES_PER_SENTENCE, MARKS_PER_SENTENCE = 4, 20
UNDERLINE = re.compile(r"[\s>]*(?:=+|-+)\s*")  # of a heading; without text it is a rule
NOT_MARKUP = frozenset(("text", "softbreak", "text_special"))

logger = logging.getLogger(__name__)

Signature = List[Tuple[Any, ...]]
IsLabel = Callable[[str], bool]  # returns whether a text is the label of a link defined in the file


@dataclass
class Block:
    """Text between hard line breaks."""

    first: int  # number of its first line
    lines: List[str]  # text of each line
    start: int  # start column on the first line
    end: int  # end column on the last line
    suffix: str  # hard line break at its end, or what ends a title
    begins: bool  # a paragraph starts with it
    is_label: InitVar[IsLabel]
    marked: Marked = field(init=False)

    def __post_init__(self, is_label: IsLabel) -> None:
        text = full_references("\n".join(self.lines).removesuffix(self.suffix), is_label)
        dollars = "\\$" in text  # otherwise formulas could begin at them
        quote = "'" if self.suffix == '"' else '"'  # of a title in quotation marks
        self.marked = Marked(text, marks_of(text), plain, lambda new: escape(new, dollars).replace('"', quote))


@register("markdown")
class Markdown(WholeFile):
    """Markdown text."""

    help = "Markdown, with tables; code, URLs, HTML blocks and front matter stay"
    endings = (".md", ".markdown")

    def parse(self, content: bytes, name: str) -> Parsed:
        text = decode(content, name)
        front = FRONT_MATTER.match(text)
        head = front[0] if front else ""
        lines = ANY_LINE.findall(text[len(head) :])
        self.reading.limits.check(len(lines), "lines", name, LINES_PER_SENTENCE)
        self.reading.limits.check(len(MARKS.findall(text)), "marks of markup", name, MARKS_PER_SENTENCE)
        reader = self.needs("markdown_it").MarkdownIt("commonmark").enable(["table", "strikethrough"])
        reference = self.needs("markdown_it.rules_block").reference

        def definition(state: Any, first: int, end: int, silent: bool) -> bool:
            """Definition of a link; that of a footnote is text, even if it is a single word."""
            start = state.bMarks[first] + state.tShift[first]
            return not state.src.startswith("[^", start) and reference(state, first, end, silent)

        reader.block.ruler.at("reference", definition)
        normalise = self.needs("markdown_it.common.utils").normalizeReference
        environment: Any = {}
        # The parser counts line feeds.
        common = common_lines([line.rstrip("\r\n") for line in lines])
        tokens = reader.parse("".join(f"{line}\n" for line in common), environment)

        def signature(text: str) -> Signature:
            (token,) = reader.parseInline(text, environment)
            return [_mark(child) for child in token.children if child.type not in NOT_MARKUP]

        def is_label(text: str) -> bool:
            return normalise(text) in environment.get("references", {})

        blocks = list(_blocks(tokens, lines, signature, is_label))
        blocks = sorted([*blocks, *_titles(tokens, lines, blocks, is_label)], key=lambda block: block.first)
        lone = {token.map[0]: token.content for token in tokens if token.type == "inline" and token.map}
        headings = [token.map[0] for token in tokens if token.type == "heading_open" and token.map]
        addresses = dict(zip(headings, addresses_of([lone.get(line, "") for line in headings], text)))

        def render(pieces: List[Pieces]) -> bytes:
            new = list(lines)
            kept = 0
            for block, own in reversed([(block, own) for block, own in zip(blocks, pieces) if own is not None]):
                kept += not _write(new, block, own, signature, addresses.get(block.first, ""))
            if kept:
                logger.warning(f"{name}: {kept:,} texts are not translated, as their markup would change")
            if others := links_to_other_files(text):
                logger.warning(f"{name}: {others:,} links to headings of other files; give these headings ids: {{#id}}")
            return (head + "".join(new)).encode()

        return Parsed([block.marked.segment(block.begins) for block in blocks], render)


def _mark(child: Any) -> Tuple[Any, ...]:
    """Returns what must be the same in the translation of a token."""
    content = child.content if child.type in ("code_inline", "html_inline", "image") else ""
    return child.type, tuple(sorted(child.attrs.items())), " ".join(content.split())


def _blocks(
    tokens: Sequence[Any], lines: Sequence[str], signature: Callable[[str], Signature], is_label: IsLabel
) -> Iterator[Block]:
    """Yields the texts of a file; those that differ from the raw lines are left out."""
    column = 0  # end of the last cell of the row
    for before, token in zip([None, *tokens], tokens):
        if token.type == "tr_open":
            column = 0
        if token.type != "inline" or not token.content or token.map is None:
            continue
        first = token.map[0]
        cell = before is not None and before.type in ("th_open", "td_open")
        texts = [token.content.replace("|", "\\|")] if cell else token.content.split("\n")
        breaks = sum(child.type == "hardbreak" for child in token.children)
        if first + len(texts) > len(lines) or breaks != sum(bool(HARD_BREAK.search(text)) for text in texts[:-1]):
            continue
        if cell:
            places = [lines[first].find(texts[0], column)]
            column = places[0] + len(texts[0])
        else:
            places = [lines[first + number].rfind(text) for number, text in enumerate(texts)]
        if min(places) >= 0:
            for begin, end in _parts(texts, signature):
                yield from _between_breaks(first, texts, places, range(begin, end), is_label)


def _titles(tokens: Sequence[Any], lines: Sequence[str], blocks: Sequence[Block], is_label: IsLabel) -> Iterator[Block]:
    """Yields the titles of admonitions, tabs and containers that are not in code or in another text."""
    code = [token.map for token in tokens if token.type in ("fence", "code_block", "html_block") and token.map]
    texts = [(block.first, block.first + len(block.lines)) for block in blocks]
    taken = {number for first, end in (*code, *texts) for number in range(first, end)}
    for number, title in titles_of(lines):
        if number not in taken:
            yield Block(number, ["".join(title.groups())], title.start(1), title.end(2), title[2], True, is_label)


def _parts(texts: Sequence[str], signature: Callable[[str], Signature]) -> List[Tuple[int, int]]:
    """Returns the line ranges of the parts of a paragraph; the whole paragraph if markup spans several parts."""
    parts, whole = list(parts_of(texts)), (0, len(texts))
    if parts == [whole]:
        return parts
    cuts = sorted({*whole, *chain.from_iterable(parts)})
    apart = [mark for a, b in pairwise(cuts) for mark in signature("\n".join(texts[a:b])) if mark[0] != "hardbreak"]
    return parts if apart == [mark for mark in signature("\n".join(texts)) if mark[0] != "hardbreak"] else [whole]


def _between_breaks(first: int, texts: List[str], places: List[int], part: range, is_label: IsLabel) -> Iterator[Block]:
    """Yields the texts of some lines of a paragraph."""
    start = part.start
    for number in part:
        text = texts[number]
        found = HARD_BREAK.search(text) if number + 1 < len(texts) else None
        if found or number + 1 == part.stop:
            suffix = found[0] if found else ""
            own = texts[start : number + 1]
            end = places[number] + len(text)
            yield Block(first + start, own, places[start], end, suffix, start == part.start, is_label)
            start = number + 1


def _write(
    lines: List[str], block: Block, pieces: List[str], signature: Callable[[str], Signature], address: str
) -> bool:
    """Replaces the lines of a text by one line; returns False if its markup would change.

    If the file has links to the text, a heading, an anchor with its ``address`` is added.
    """
    text = " ".join(block.marked.render(pieces).split("\n"))
    if pieces[0].strip() and pieces[0] != block.marked.pieces[0]:
        text = escape_first(text)
    if signature(text) != signature(block.marked.render(None)):
        return False
    last = block.first + len(block.lines)
    if not text.strip() and last < len(lines) and UNDERLINE.fullmatch(lines[last]):
        return False
    if address and letters(text) != letters(block.marked.render(None)):
        text += f'<a id="{html.escape(address)}"></a>'
    line = lines[block.first][: block.start] + text + block.suffix + lines[last - 1][block.end :]
    lines[block.first : last] = [line]
    return True
