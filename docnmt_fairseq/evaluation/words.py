"""Words of a text by a simple rule, for metrics that compare single words."""

import re
from typing import List

WORD = re.compile(r"\w+")


def words_of(text: str) -> List[str]:
    """The words of a text in order, without case: runs of letters, digits and underscores."""
    return WORD.findall(text.lower())
