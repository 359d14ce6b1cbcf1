"""A list of terms with their translations, and finding terms in text."""

import re
from pathlib import Path
from typing import Dict, Iterable, Pattern, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

# Characters of scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
SPACED = rf"[^\W{UNSPACED}]"  # letters, digits and underscores that would belong to the same word


def read_terms(path: Path) -> Dict[str, Tuple[str, ...]]:
    """The forms of each source term, all casefolded; rows ``TERM<TAB>FORM|FORM...``.

    Raises:
        InputError: a row is not of that kind, a term stands twice, or there is none; names file and row.
    """
    terms: Dict[str, Tuple[str, ...]] = {}
    rows: Dict[str, int] = {}
    for row, text in enumerate(read_lines(path), start=1):
        if not text:
            continue
        fields = [" ".join(field.casefold().split()) for field in text.split("\t")]
        forms = tuple(filter(None, map(str.strip, fields[-1].split("|"))))
        if len(fields) != 2 or not fields[0] or not forms:
            raise InputError.at(path, row, f"{text!r} is not TERM<TAB>FORM|FORM...: a source term, its translations")
        if fields[0] in terms:
            message = f"{fields[0]!r} stands in row {rows[fields[0]]} already; give all of its forms there, | between"
            raise InputError.at(path, row, message)
        terms[fields[0]], rows[fields[0]] = forms, row
    if not terms:
        raise InputError(f"{path}: holds no term; give rows TERM<TAB>FORM|FORM...")
    return terms


def finder(terms: Iterable[str]) -> Pattern[str]:
    """Finds these terms, casefolded, in a casefolded text; of two at one place the longer one.

    They are found as whole words, but no end of a word is asked for where scripts show none: at an end of a term that
    is of a script without spaces, or beside such characters.
    """
    longest_first = sorted(terms, key=len, reverse=True)
    return re.compile("|".join(map(_whole, longest_first)))


def _whole(term: str) -> str:
    """The regular expression of a term that is not part of a longer word."""
    first, last = (re.match(f"[{UNSPACED}]", end) for end in (term[0], term[-1]))
    return f"{'' if first else f'(?<!{SPACED})'}{re.escape(term)}{'' if last else f'(?!{SPACED})'}"
