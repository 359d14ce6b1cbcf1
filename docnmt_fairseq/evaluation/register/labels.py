"""Which register a line of a test set needs: from a file, or as the reference shows it."""

import re
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.register.base import RegisterRule
from docnmt_fairseq.evaluation.texts import References, segments


def labels_of(references: References, rule: RegisterRule, path: Optional[Path]) -> List[Optional[str]]:
    """The register that each sentence needs, [sentences]; None where it needs none, or it is unclear.

    Args:
        references: of the test set.
        rule: of their language.
        path: rows ``LINE<TAB>REGISTER``, lines counted from 0 in the delimited reference, marks and empty lines
            included; without it, what the first reference surely shows.

    Raises:
        InputError: a bad row, a line that is no sentence, an unknown register, or no line that needs one.
    """
    if path is not None:
        by_line = read_labels(path, references, rule)
        return [by_line.get(number - 1) for numbers in references.lines for number in numbers]
    found = [rule.register_of(sentence, sure_only=True) for sentence in segments(references.streams[0])]
    if not any(found):
        raise InputError(
            f"{references.files[0]}: no line shows {' or '.join(rule.marks)} for sure: check --register-language, or "
            "say with --register-labels what the lines need"
        )
    return found


def read_labels(path: Path, references: References, rule: RegisterRule) -> Dict[int, str]:
    """The register by line, from 0; see :func:`labels_of`."""
    reference = references.files[0]
    sentences = {number - 1 for numbers in references.lines for number in numbers}
    labels: Dict[int, Tuple[str, int]] = {}
    for row, text in enumerate(read_lines(path), start=1):
        if not text:
            continue
        fields = text.split("\t")
        if len(fields) != 2 or not re.fullmatch(r"[0-9]+", fields[0]):
            message = f"{text!r} is not LINE<TAB>REGISTER, such as 12<TAB>{next(iter(rule.marks))}; lines count from 0"
            raise InputError.at(path, row, message)
        line, register = int(fields[0]), fields[1]
        if register not in rule.marks:
            message = f"no register {register!r}; --register-language has {', '.join(rule.marks)}"
            raise InputError.at(path, row, message)
        if line not in sentences:
            message = f"line {line} of {reference} is no sentence; lines count from 0, with marks and empty lines"
            raise InputError.at(path, row, message)
        if line in labels:
            raise InputError.at(path, row, f"line {line} has its register in row {labels[line][1]}; leave one of them")
        labels[line] = (register, row)
    if not labels:
        raise InputError(f"{path}: no line is marked; give rows LINE<TAB>REGISTER, or leave --register-labels out")
    return {line: register for line, (register, _) in labels.items()}
