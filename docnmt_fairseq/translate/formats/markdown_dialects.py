"""Dialects of Markdown: indented blocks of MkDocs, code of MDX, and addresses of headings (#getting-started)."""

import re
from collections import Counter
from typing import Dict, Iterator, List, Sequence, Tuple
from urllib.parse import unquote

from docnmt_fairseq.translate.formats.messages import CODE_BLOCKS

# Heads of blocks with indented content: admonitions, tabs; notes and definitions, which start on the same line.
HEAD = re.compile(r"""(?:!{3}|\?{3}\+?)(?:\s+[a-z][\w-]*)+(?:\s+"[^"]*")?\s*$|={3}[!+]?\s+"[^"]*"\s*$""")
# Their titles, and those of containers: title, and what ends it.
TITLES = (
    re.compile(r"""\s*(?:(?:!{3}|\?{3}\+?)(?:\s+[a-z][\w-]*)+|={3}[!+]?)\s+"([^"]+)(")\s*$"""),
    re.compile(r"\s*:{3,}\s*[a-z][\w-]*\[(.+)(\])(?:\{[^{}]*\})?\s*$"),
    re.compile(
        r"\s*:{3,}\s*(?:caution|danger|details|important|info|note|question|success|tip|warning)\s+(\w[^{}\"\[\]]*?)()\s*$"
    ),
)
START = re.compile(r"\[\^[^\[\]]+\]:|:\s+\S")
FENCE = re.compile(r"(?:[-*+>]\s+|\d+[.)]\s+)*(`{3,}(?=[^`]*$)|~{3,})")
# Statements of MDX, which end at an empty line.
STATEMENT = re.compile(
    r"""import\s+(?:[\w*{].*\sfrom\s+)?["'][^"']+["'];?\s*$|import\s+\{\s*$"""
    r"""|export\s+(?:(?:const|let|var)\s+[\w{\[].*=|(?:default|async|function|class)\s.*[({=]|\{|\*)"""
)
INDENT = 4
# Blocks of templates with code, and their ends.
CODE_BLOCK = re.compile(
    rf"\{{%-?\s*(?:{CODE_BLOCKS})\b"
    r"|\{\{[<%]\s*(?:highlight|mermaid)\b|\{::(?:comment|nomarkdown)\b"
)
CODE_END = re.compile(
    rf"\{{%-?\s*end(?:{CODE_BLOCKS})\b"
    r"|\{\{[<%]\s*/\s*(?:highlight|mermaid)\b|\{:/"
)
EXPRESSION = re.compile(r"\{(?![%#:!]|\{[<%])")  # of MDX
OPTIONS = re.compile(r":::\s+[\w.]+\s*$")  # of mkdocstrings, followed by indented lines
MAX_EXPRESSION = 200  # lines


def common_lines(lines: Sequence[str]) -> List[str]:
    """Returns the lines as CommonMark: indented blocks without indentation, heads and code of MDX as empty lines."""
    return list(_common_lines(_without_code(lines)))


def _without_code(lines: Sequence[str]) -> List[str]:
    """Returns the lines with code of templates and expressions of MDX over several lines as empty lines."""
    kept = list(lines)
    last_end = max((number for number, line in enumerate(lines) if CODE_END.search(line)), default=-1)
    number, fence = 0, ""
    while number < len(lines):
        own = lines[number].strip()
        end = number
        if fence:
            fence = "" if own.startswith(fence) and not own.strip(fence[0]) else fence
        elif found := FENCE.match(own):
            fence = found[1]
        elif CODE_BLOCK.match(own) and number < last_end and not CODE_END.search(own):
            end = next(n for n in range(number, len(lines)) if CODE_END.search(lines[n])) + 1
        elif EXPRESSION.match(own):
            end = _expression_end(lines, number)
        elif OPTIONS.match(own):
            end = number + 1
            while end < len(lines) and lines[end].startswith("  "):
                end += 1
        kept[number:end] = ["" for _ in range(number, end)]
        number = max(end, number + 1)
    return kept


def _expression_end(lines: Sequence[str], first: int) -> int:
    """Returns the line after an expression of several lines; ``first`` if there is none."""
    depth = 0
    for number in range(first, min(first + MAX_EXPRESSION, len(lines))):
        depth += lines[number].count("{") - lines[number].count("}")
        if depth <= 0:
            return number + 1 if number > first and lines[number].rstrip().endswith("}") else first
    return first


def _common_lines(lines: Sequence[str]) -> Iterator[str]:
    heads: List[int] = []  # indentation of the blocks around a line
    fence, code, empty = "", False, True
    for line in lines:
        text = line.expandtabs(INDENT)
        own = text.lstrip(" ")
        indent = len(text) - len(own)
        if own:
            while heads and indent < heads[-1] + INDENT:
                heads.pop()
                fence = ""
        found = FENCE.match(own)
        is_head = False
        if fence:
            fence = "" if own.startswith(fence) and not own.strip(fence[0]) else fence
        elif found:
            fence = found[1]
        else:
            is_head = bool(HEAD.match(own))
            code = bool(own) and (code or (empty and not indent and bool(STATEMENT.match(own))))
        yield "" if is_head or code else text[INDENT * len(heads) :] if heads else line
        if is_head or (not fence and not code and START.match(own)):
            heads.append(indent)
        empty = not own


def titles_of(lines: Sequence[str]) -> Iterator[Tuple[int, "re.Match[str]"]]:
    """Yields the titles of admonitions, tabs and containers with the numbers of their lines."""
    for number, line in enumerate(lines):
        for pattern in TITLES:
            if found := pattern.match(line):
                yield number, found


# --- Addresses of headings ---

LINK = re.compile(r"""(?:\]\(\s*<?|\]:\s*<?|href\s*=\s*["']?)#([^\s)>"']+)""")
OTHER_FILE = re.compile(r"""(?:\]\(\s*<?|\]:\s*<?)(?![a-z]+:)[^\s)>#]+\.mdx?#[^\s)>]+""")
TARGET = re.compile(r"\]\([^()]*\)")
OWN = re.compile(r"\{[^{}]*#[^{}]+\}|<a\s[^<>]*(?:id|name)\s*=", re.IGNORECASE)  # address in the heading itself


def letters(text: str) -> str:
    """Returns what the dialects keep of a heading in its address, without the signs in between."""
    return re.sub(r"[\W_]+", "", TARGET.sub("", text)).lower()


def addresses_of(headings: Sequence[str], text: str) -> List[str]:
    """Returns the address of each heading that the text has a link to; "" for the others."""
    links: Dict[str, str] = {letters(unquote(link)): unquote(link) for link in LINK.findall(text)}
    seen: Counter[str] = Counter()
    found = []
    for heading in headings:
        own = letters(heading)
        number = seen[own]
        seen[own] += 1
        found.append("" if OWN.search(heading) or not own else links.get(f"{own}{number or ''}", ""))
    return found


def links_to_other_files(text: str) -> int:
    """Returns the number of links to headings of other files."""
    return len(OTHER_FILE.findall(text))
