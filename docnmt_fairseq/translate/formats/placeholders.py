"""What stands in the messages of programs and is no text: tags, and places that the program fills in."""

import re
from typing import Iterator, List, Tuple

from docnmt_fairseq.translate.formats.inline import tags_of
from docnmt_fairseq.translate.formats.units import Gap

# Of printf, Python, Objective-C, Qt, and in braces.
FILLED_IN = re.compile(
    r"%(?:\d+\$)?(?:\([^()]*\))?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|L|z|j|t|q)?[a-zA-Z%@]|%L?\d+|\$?\{[^{}\s]*\}"
)
BRACE = re.compile("[{}]")
# In braces that may hold others, all of which stays: {{name}}, and ICU's {n, plural, one {# file} other {# files}}.
NESTED = re.compile(
    r"\{\{|\{\s*[\w.-]+\s*,\s*(?:plural|select|selectordinal|choice|number|date|time|spellout|ordinal|duration)\b"
)


def marks_of_message(text: str) -> Iterator[Tuple[int, int, Gap]]:
    """Where in a message something is that stays, and of what kind it is; they may overlap."""
    for tag in tags_of(text):
        yield tag.start, tag.end, tag.gap
    for found in FILLED_IN.finditer(text):
        yield *found.span(), Gap.OBJECT
    is_open: List[int] = []
    for found in BRACE.finditer(text):
        if found[0] == "{":
            is_open.append(found.start())
        elif is_open and NESTED.match(text, start := is_open.pop()):
            yield start, found.end(), Gap.OBJECT
