"""Inline markup of Markdown and its dialects (GitHub, MkDocs, Hugo, Pandoc); doubtful characters count as markup."""

import html
import re
from bisect import bisect_right
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from docnmt_fairseq.translate.formats.inline import Mark, marks_in, objects_in
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.messages import TEMPLATE, closed_braces

ALERT = re.compile(r"\A\[![A-Za-z]+\][+-]?")
DIALECTS = (
    re.compile(r"\A\[[ xX]\](?=\s)"),  # task
    ALERT,
    re.compile(r"\A(?:\*\[[^\[\]]*\]:|:(?=\s))"),  # definition
    TEMPLATE,
    re.compile(r"\{:?\s*[#.][^{}]*\}|\{:[^{}]*\}"),  # attributes
    re.compile(r"(?<![\w:]):(?!\d+:)[a-z0-9_+-]+:(?![\w:])"),  # emoji, icons
    re.compile(r"\+\+[\w+\"'-]+\+\+"),  # keys
    # user or package, issue, variable
    re.compile(r"(?<![\w@./])@[A-Za-z\d][\w-]*(?:/[\w.-]*\w)?|(?<![\w./-])[\w.-]+/[\w.-]+#\d+|\$[A-Za-z_]\w*\b"),
    # H~2~O, x^2^
    re.compile(r"\w{0,30}(?<![~\\])~[^\s~]{1,30}~(?!~)\w*|\w{0,30}(?<![\^\\\[])\^[^\s^\]]{1,30}\^(?!\^)\w*"),
    re.compile(r"\^(?=\[)"),  # of a note within the text
)
# Lines without text: head or end of a container, tags of templates, attributes, included files.
ALONE = re.compile(
    r":{3,}|(?:\{%(?:[^%]|%(?!\}))*%\}\s*)+$|\{\{[<%][^{}]*[>%]\}\}\s*$|\{(?::|\s*[#.])[^{}]*\}\s*$|-+8<-+|\{!.*!\}\s*$"
    r"|\[\[?_?TOC_?\]\]?\s*$",
    re.IGNORECASE,
)
FORMULA = "$$"
# Lines that start another part of a paragraph: footnotes, abbreviations, definitions.
BEGINS = re.compile(r"\[\^[^\[\]]+\]:|\*\[[^\[\]]+\]:|:\s")

TARGET = r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])?"  # of a link or an image
# Amounts as in "$5 or 6 $" are text, and escaped brackets without signs, digits or single letters contain text.
FORMULAS = re.compile(
    r"\\begin\{(\w+\*?)\}.{0,20000}?\\end\{\1\}|(?<![\\$])\$\$[^$]+\$\$"
    r"|(?<![\\$\w])\$(?![\s$]|\d[^$\\]*\s[^\W\d_]{2,}\s)(?:[^$\\]|\\.)*(?<![\s\\])\$(?![\d$\w])"
    r"|(?<!\\)\\{1,2}\((?=(?:[^\\]|\\[^)\\])*?(?:[\^_=+<>{}\d]|\\[^)\\])|\s*\w\s*\\\)).*?\\{1,2}\)"
    r"|(?<!\\)\\{1,2}\[(?=(?:[^\\]|\\[^\]\\])*?(?:[\^_=+<>{}]|\\[^\]\\])|\s*\w\s*\\\]).*?\\{1,2}\]",
    re.DOTALL,
)
OBJECTS = (
    re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>"),
    re.compile(r"!\[[^\[\]]*\]" + TARGET),
    re.compile(r"\[\^[^\[\]]*\]:?"),  # of a footnote
    *DIALECTS,
)
SHORT = re.compile(r"(?<![\\!\]])\[(?![\^!])([^\[\]]+)\](?:\[\]|(?![\[(:]))")  # [label] or [label][]
LINK_END = re.compile(r"\]" + TARGET)
RUN = re.compile(r"\*+|_+|~~|==|\^\^")
CODE = re.compile(r'[=+*&|<>"`$\[\]]|\w\.\w|\w\(|\?\s')  # in braces: an expression of MDX
TICKS = re.compile(r"`+")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
SPECIAL = re.compile(r"[\\`*\[\]<|~]|(?<!\w)#|(?<!\w)_|_(?!\w)|&(?=#?\w+;)")
FIRST = re.compile(r"[-+>=]|(?<=\d)[.)](?=\s|$)")
NUMBER = re.compile(r"\d{1,9}(?=[.)](?:\s|$))")


def marks_of(text: str) -> List[Mark]:
    """Returns the spans of markup with their kinds, which may overlap."""
    marks: List[Mark] = [*_code(text), *objects_in(text, FORMULAS)]
    text = ESCAPED.sub("..", text)
    marks += marks_in(text, *OBJECTS)
    marks += [(*found.span(), Gap.OPEN) for found in re.finditer(r"\[", text)]
    marks += [(*found.span(), Gap.CLOSE) for found in LINK_END.finditer(text)]
    marks += [(start, end, Gap.OBJECT) for start, end in closed_braces(text).items() if CODE.search(text, start, end)]
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


def full_references(text: str, is_label: Callable[[str], bool]) -> str:
    """Returns a text with references to links in full, so that labels stay: ``[text][text]`` for ``[text]``."""
    code = [(start, end) for start, end, _ in _code(text)]

    def full(found: "re.Match[str]") -> str:
        inside = any(start < found.start() < end for start, end in code)
        return found[0] if inside or not is_label(found[1]) else f"[{found[1]}][{found[1]}]"

    return SHORT.sub(full, text)


def plain(raw: str) -> str:
    """Returns the readable text of raw text without markup."""
    return html.unescape(ESCAPED.sub(r"\1", raw)).replace("\n", " ")


def escape(text: str, dollars: bool = False) -> str:
    """Escapes everything that would be read as markup, also dollar signs if asked for."""
    text = SPECIAL.sub(r"\\\g<0>", text)
    return text.replace("$", "\\$") if dollars else text


def escape_first(text: str) -> str:
    """Escapes the start of a text that would be read as a list or heading."""
    number = NUMBER.match(text)
    found = FIRST.match(text, number.end() if number else 0)
    return text if found is None else f"{text[: found.start()]}\\{text[found.start() :]}"


def parts_of(lines: Sequence[str]) -> Iterator[Tuple[int, int]]:
    """Yields the ranges of lines of a paragraph that are texts.

    Lines without text and formulas on their own lines are left out. The line of an alert is a separate part.
    """
    start, formula = 0, False
    for number, line in enumerate(lines):
        turns = line.count(FORMULA) % 2 == 1 and (line.startswith(FORMULA) or line.rstrip().endswith(FORMULA))
        if formula or turns or ALONE.match(line):
            if start < number:
                yield start, number
            start, formula = number + 1, formula != turns
        elif start < number and (BEGINS.match(line) or ALERT.match(lines[start])):
            if line.startswith(":") and not lines[start].startswith(":"):  # several terms of a definition
                yield from ((term, term + 1) for term in range(start, number))
            else:
                yield start, number
            start = number
    if start < len(lines):
        yield start, len(lines)
