"""A list of terms with their translations, and finding terms in text."""

import re
from pathlib import Path
from typing import Dict, Iterable, Pattern, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError


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
    """Finds these terms, casefolded, as whole words of a casefolded text; of two at one place the longer one."""
    longest_first = sorted(terms, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
