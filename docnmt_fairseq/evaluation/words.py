"""Words of a text, and where its sentences may begin, by simple rules."""

import re
from typing import List

WORD = re.compile(r"\w+")
# Numbers of repetitions are bounded, so that a line of thousands of signs takes no longer than one of letters.
BEGINNING = re.compile(
    r"(?:^|[.!?:\"„»(–-])\s*$"
    r"|(?:^|[.!?:…])\W{0,9}$"  # whatever signs stand between: a dash, a bullet, a closing quotation mark, …
    r"|(?<!\w)[“«‚‘'’‹\[]$"  # quotation marks that also close, and do so before a space
    r"|(?:^|[.!?:…])\W{0,9}(?:[(\[][^()\[\]]{0,200}|\w{1,3})[)\]]\s*$"  # (Laughter), [2], a)
)


def words_of(text: str) -> List[str]:
    """The words of a text in order, without case: runs of letters, digits and underscores."""
    return WORD.findall(text.lower())


def may_begin_sentence(line: str, start: int) -> bool:
    """Whether the word at this place of a line may be the first of a sentence, whose capital then says nothing."""
    return BEGINNING.search(line[:start]) is not None
