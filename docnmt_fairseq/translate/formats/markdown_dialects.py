"""Markup of Markdown's dialects (GitHub, MkDocs, Hugo, Pandoc, …), which CommonMark reads as text of a paragraph."""

import re
from typing import Iterator, Sequence, Tuple

ALERT = re.compile(r"\A\[![A-Za-z]+\][+-]?")  # its kind, with which it begins
# Inside of a text.
DIALECTS = (
    re.compile(r"\A\[[ xX]\](?=\s)"),  # of a task
    ALERT,
    re.compile(r"\A(?:\*\[[^\[\]]*\]:|:(?=\s))"),  # what a definition is of, or its sign
    re.compile(r"\{\{[^{}]*\}\}|\{%[^{}]*%\}"),  # filled in by a site's generator
    re.compile(r"\{:?\s*[#.][^{}]*\}"),  # attributes
    re.compile(r"\$\$[^$]+\$\$"),
)
# Lines of markup alone: the ends of containers, the heads of admonitions and tabs.
ALONE = re.compile(r""":{3,}|(?:!{3}|\?{3}\+?)(?:\s+[a-z][\w-]*)+(?:\s+"[^"]*")?\s*$|={3}[!+]?\s+"[^"]*"\s*$""")
FORMULA = "$$"  # what begins and ends one
# Lines with which another part of a paragraph begins: those of footnotes, abbreviations, definitions.
BEGINS = re.compile(r"\[\^[^\[\]]+\]:|\*\[[^\[\]]+\]:|:\s")


def parts_of(lines: Sequence[str]) -> Iterator[Tuple[int, int]]:
    """The parts of a paragraph that are texts, by the numbers of their first line, and of the one behind them.

    Lines of markup alone, and formulas in lines of their own, are of none. The line of an alert is a part by itself.
    """
    start, formula = 0, False
    for number, line in enumerate(lines):
        turns = line.count(FORMULA) % 2 == 1 and (line.startswith(FORMULA) or line.rstrip().endswith(FORMULA))
        if formula or turns or ALONE.match(line):
            if start < number:
                yield start, number
            start, formula = number + 1, formula != turns
        elif start < number and (BEGINS.match(line) or ALERT.match(lines[start])):
            yield start, number
            start = number
    if start < len(lines):
        yield start, len(lines)
