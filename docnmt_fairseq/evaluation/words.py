"""Word matching in plain text by simple rules."""

import re
from typing import Iterable, List, Pattern

WORD = re.compile(r"\w+")
# Repetitions are bounded, so that lines of thousands of signs are matched in linear time.
SENTENCE_START = re.compile(
    r"(?:^|[.!?:\"„»(–-])\s*$"
    r"|(?:^|[.!?:…])\W{0,9}$"  # any signs in between: a dash, a bullet, a closing quotation mark, …
    r"|(?<!\w)[“«‚‘'’‹\[]$"  # quotation marks that also close, before a space
    r"|(?:^|[.!?:…])\W{0,9}(?:[(\[][^()\[\]]{0,200}|\w{1,3})[)\]]\s*$"  # (Laughter), [2], a)
)
# Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
SPACED = rf"[^\W{UNSPACED}]"  # word characters of all other scripts


def words_of(text: str) -> List[str]:
    """Lowercased words of a text: runs of letters, digits and underscores."""
    return WORD.findall(text.lower())


def may_begin_sentence(line: str, start: int) -> bool:
    """Returns whether the word at this position may begin a sentence, so that its capital is not informative."""
    return SENTENCE_START.search(line[:start]) is not None


def whole_words(terms: Iterable[str]) -> Pattern[str]:
    """Pattern that finds casefolded terms as whole words in casefolded text, the longest one at each position.

    Word boundaries are not required next to characters of scripts without spaces.
    """
    longest_first = sorted(terms, key=len, reverse=True)
    return re.compile("|".join(map(_whole_word, longest_first)))


def _whole_word(term: str) -> str:
    first, last = (re.match(f"[{UNSPACED}]", end) for end in (term[0], term[-1]))
    return f"{'' if first else f'(?<!{SPACED})'}{re.escape(term)}{'' if last else f'(?!{SPACED})'}"
