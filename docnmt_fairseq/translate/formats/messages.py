"""Messages of programs: placeholders, and plurals and selections of ICU, whose branches are separate texts."""

import re
from itertools import pairwise
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from docnmt_fairseq.translate.formats.base import Pieces
from docnmt_fairseq.translate.formats.inline import ADDRESSES, Mark, Marked, marks_in, notes_in, objects_in
from docnmt_fairseq.translate.formats.markup_projection import Gap, Span
from docnmt_fairseq.translate.formats.segments import Segment

CODE_BLOCKS = "comment|highlight|code(?:block)?|javascript|schema|style(?:sheet)?|mermaid"  # of templates
# Text that a program inserts: {% if x %}, <%= x %>, {# comment #}, {!! x !!}, {{ x }}, [[${x}]], %name%, %%name%%,
# *|name|*, {name}, { name }, ${x}, #{x}, %{x}, {0:d M}, {/* comment */}
TEMPLATE = re.compile(
    rf"\{{%-?\s*({CODE_BLOCKS})\b.{{0,5000}}?\{{%-?\s*end\1\s*-?%\}}"
    r"|\{\{[<%]\s*(highlight|mermaid)\b.{0,5000}?\{\{[<%]\s*/\s*\2\s*[%>]\}\}|\{::(comment|nomarkdown)\b.{0,5000}?\{:/(?:\3)?\}"
    r"|\{%.{0,5000}?%\}|<%.{0,5000}?%>|\{#[^{}]*#\}|\{!!.{0,500}?!!\}|\{\{!?--.*?--\}\}|\{{2,3}[^{}]*\}{2,3}|\[\[[^\[\]\n]*\]\](?!\()"
    r"|\[%.{0,500}?%\]|%%=.{0,500}?=%%|</?[#@][A-Za-z][^<>]*>|\{[^{}]*(?:\$[A-Za-z_]|=)[^{}]*\}|@\([^()]*\)"
    r"|(?<![\w%])%[A-Za-z_]\w*(?:\.\w+)*%(?!\w)|%%\w+%%|##\w+##|\*\|[^|\n]*\|\*"
    r"|[$#]\{[^{}]*\}|%?\{\s*[\w.-]*\s*\}|\{[^{}\s]*\}|\{(?:\d+(?:,-?\d+)?:|\w+:%)[^{}]*\}|\{/\*.*?\*/\}",
    re.DOTALL,
)
# [shop_name], __count__, @@name@@, @user.Name, :name, !link, $name, $NAME$, $t(key), @:key, \\(name), #ff0000
NAMED = re.compile(
    r"\[(?:[a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)+)\]|(?<!\w)__\w+?__(?!\w)|@@\w+@@|(?<![\w@.])@[A-Za-z][\w.-]*\w(?:\([^()]*\))?"
    r"|(?<!\S)[:!][A-Za-z]\w+\b(?!:)|\$t\((?:[^()]|\([^()]*\))*\)|\$[A-Za-z_]\w*\$?|@(?:\.\w+)?:[\w.]+|\\\([\w.]+\)"
    r"|(?<![\w&])#(?:[\da-fA-F]{6}|[\da-fA-F]{8})\b"
)
# Of printf, Python, Objective-C, Qt; not after a digit: 100%ig.
PRINTF = re.compile(
    r"(?<!\d)%(?:\d+\$)?(?:\([^()]*\))?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|L|z|j|t|q)?[a-zA-Z%@]|(?<!\d)%L?\d+"
)
_FIELD = r"(?:Y{2,4}|y{2,4}|M{2,4}|D{2}|d{2}|H{2}|h{2}|m{2}|s{2})"
DATE = re.compile(rf"(?<!\w){_FIELD}(?:[-/.: T]+{_FIELD})+(?!\w)")  # YYYY-MM-DD
ENTITY = re.compile(r"&(?:#\d+|#x[\da-fA-F]+|[A-Za-z]\w{1,30});")
# Escapes, code, and roles and substitutions of reStructuredText: \n, `make`, ``make``, :ref:`label <target>`, |name|
LITERAL = re.compile(r"\\[nrt]|``.+?``|:[a-z][\w:-]*:`[^`]+`|(?<![\w>`:])`[^`<\n]+`(?!_)|(?<![\w|])\|[\w-]+\|(?![\w|])")
NUMBERED = re.compile(r"<(/?)\d+(/?)>")  # element of react-i18next
# Of WordPress and forums: [gallery id="5"], [b]text[/b]
SHORTCODE = re.compile(r"""\[[a-z][\w-]*(?:=[^\[\]\s]+|(?:\s+[\w-]+=(?:"[^"]*"|'[^']*'|[^\s\[\]"']+))+)\s*/?\]""")
SHORTCODE_END = re.compile(r"\[/([a-z][\w-]*)\]")
BRACE = re.compile("[{}]")
# With nested braces: {{name}}, and ICU's {n, plural, one {# file} other {# files}}.
NESTED = re.compile(
    r"\{\{|\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal|choice|number|date|time|spellout|ordinal|duration)\b"
)
CHOICE = re.compile(r"\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,(?:\s*offset:\d+)?")
BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*(?=\{)")
END = re.compile(r"\s*\}")
STAND_IN = re.compile("\1")  # for a plural or selection in its message
NUMBER = re.compile("#")  # in the branches of plurals

DIVISION = re.compile(r"[\n\t]| \| ")  # line ends, tabs; Vue's plural forms

Marks = Callable[[str], Iterable[Mark]]


def marks_of_message(text: str) -> Iterator[Mark]:
    """Yields tags and placeholders of a message, which may overlap."""
    yield from marks_in(text, ENTITY, LITERAL)
    yield from objects_of(text)
    for found in NUMBERED.finditer(text):
        yield *found.span(), Gap.CLOSE if found[1] else Gap.OBJECT if found[2] else Gap.OPEN


def objects_of(text: str) -> Iterator[Mark]:
    """Yields addresses, marks of notes and placeholders, which may overlap."""
    yield from notes_in(text)
    yield from objects_in(text, *ADDRESSES, TEMPLATE, NAMED, PRINTF, DATE)
    yield from _shortcodes(text)
    ends = closed_braces(text)
    for start, end in ends.items():
        if NESTED.match(text, start):
            yield start, end, Gap.OBJECT
    for found in CHOICE.finditer(text):
        if found.start() not in ends:  # malformed
            yield found.start(), len(text), Gap.OBJECT


def _shortcodes(text: str) -> Iterator[Mark]:
    ended = {found[1] for found in SHORTCODE_END.finditer(text)}
    yield from ((*found.span(), Gap.CLOSE) for found in SHORTCODE_END.finditer(text))
    yield from objects_in(text, SHORTCODE)
    if ended:
        names = "|".join(map(re.escape, sorted(ended)))
        for found in re.finditer(rf"\[(?:{names})(?:[\s=][^\[\]]*)?\]", text):
            yield *found.span(), Gap.OPEN


def closed_braces(text: str) -> Dict[int, int]:
    """Returns the end of each pair of braces by its start."""
    found: Dict[int, int] = {}
    is_open: List[int] = []
    for brace in BRACE.finditer(text):
        if brace[0] == "{":
            is_open.append(brace.start())
        elif is_open:
            found[is_open.pop()] = brace.end()
    return found


class Message:
    """Message as one text or several: its parts, and the branches of its plurals and selections.

    Args:
        text: raw text.
        marks: returns the spans of markup in a text.
        division: separators of texts that are translated independently.
        number: # is a placeholder.
    """

    def __init__(
        self,
        text: str,
        marks: Marks = marks_of_message,
        division: "Optional[re.Pattern[str]]" = None,
        number: bool = False,
    ):
        self._choices: List[List[Union[str, Message]]] = []
        outer, behind = "", 0
        for start, end, branches in _choices(text):
            outer += text[behind:start] + STAND_IN.pattern
            choice: List[Union[str, Message]] = []
            behind = start
            for first, last in branches:
                choice += [text[behind:first], Message(text[first:last], marks, division, number=True)]
                behind = last
            self._choices.append([*choice, text[behind:end]])
            behind = end
        outer += text[behind:]
        objects = (STAND_IN, NUMBER) if number else (STAND_IN,)
        found = sorted([*objects_in(outer, *objects), *marks(outer)])
        self._parts = [
            Marked(
                outer[start:end],
                [(a - start, b - start, gap) for a, b, gap in found if start <= a and b <= end],
                escape=lambda new: STAND_IN.sub("", new),
            )
            for start, end in _divided(outer, found, division)
        ]

    def segments(self, new_paragraph: bool = True) -> List[Segment]:
        """Returns the texts as segments; a paragraph starts with the first one."""
        inner = [one for choice in self._choices for one in choice if isinstance(one, Message)]
        found = [part.segment(new_paragraph=False) for part in self._parts]
        found += [segment for one in inner for segment in one.segments(new_paragraph=False)]
        return [Segment(found[0].pieces, found[0].gaps, new_paragraph), *found[1:]]

    def render(self, pieces: Iterator[Pieces]) -> str:
        """Returns the message with new pieces of its next segments."""
        first, *rest = STAND_IN.split("".join([part.render(next(pieces)) for part in self._parts]))
        for choice, behind in zip(self._choices, rest):
            first += "".join(one.render(pieces) if isinstance(one, Message) else one for one in choice) + behind
        return first


def _divided(text: str, marks: List[Mark], division: "Optional[re.Pattern[str]]") -> List[Span]:
    """Returns the spans of a text between separators that are not inside of markup, and of these separators."""
    cuts = {0, len(text)}
    behind, rest = 0, iter([*marks, (len(text), len(text), Gap.OBJECT)])
    following = next(rest)
    for found in division.finditer(text) if division else ():
        while following[0] <= found.start() and following[0] < len(text):
            behind, following = max(behind, following[1]), next(rest)
        if behind <= found.start():
            cuts.update(found.span())
    return list(pairwise(sorted(cuts))) or [(0, 0)]


def _choices(text: str) -> Iterator[Tuple[int, int, List[Span]]]:
    """Yields the outermost plurals and selections of ICU: start, end, spans of the branches."""
    ends: Optional[Dict[int, int]] = None
    place = 0
    while head := CHOICE.search(text, place):
        ends = closed_braces(text) if ends is None else ends
        branches: List[Span] = []
        place = head.end()
        while (branch := BRANCH.match(text, place)) and branch.end() in ends:
            place = ends[branch.end()]
            branches.append((branch.end() + 1, place - 1))
        end = END.match(text, place)
        if branches and end:
            place = end.end()
            yield head.start(), place, branches
