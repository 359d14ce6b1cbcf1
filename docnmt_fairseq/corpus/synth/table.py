"""The table of undecidable words: one row a word, beside the split it belongs to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, List, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

COLUMNS = ("line", "id", "position", "kind", "distance", "right", "wrong", "source_word")


@dataclass(frozen=True)
class Case:
    """One target word that its sentence does not decide.

    ``id`` is the sentence's sample id in fairseq, its line number counted from 0; ``position`` the word's place in the
    target sentence, from 0; ``distance`` the sentences back to the one that decides.
    """

    id: int
    position: int
    kind: str
    distance: int
    right: str
    wrong: Tuple[str, ...]
    source_word: str


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Writes the table, header first."""
    with path.open("w", encoding="utf-8") as file:
        print(*COLUMNS, sep="\t", file=file)
        for case in cases:
            wrong = " ".join(case.wrong)
            row = (case.id + 1, case.id, case.position, case.kind, case.distance, case.right, wrong, case.source_word)
            print(*row, sep="\t", file=file)


def read_cases(path: Path) -> List[Case]:
    """The rows of a table written by ``write_cases``.

    Raises:
        InputError: no such file, not UTF-8, another header, or a row that is not as the header says; names the line.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; write the corpus with docnmt synth")
    lines = list(read_lines(path, strip="\r\n"))
    if not lines or lines[0].split("\t") != list(COLUMNS):
        raise InputError.at(path, 1, f"expected the tab-separated header {' '.join(COLUMNS)}")
    cases = [_parse(path, number, line) for number, line in enumerate(lines[1:], start=2)]
    if not cases:
        raise InputError(f"{path}: holds no rows; write the corpus again with more documents")
    return cases


def _parse(path: Path, number: int, line: str) -> Case:
    fields = line.split("\t")
    if len(fields) != len(COLUMNS):
        raise InputError.at(path, number, f"has {len(fields)} tab-separated fields, expected {len(COLUMNS)}")
    row = dict(zip(COLUMNS, fields))
    try:
        integers = {name: int(row[name]) for name in ("line", "id", "position", "distance")}
    except ValueError:
        raise InputError.at(path, number, "line, id, position and distance must be whole numbers") from None
    if integers["id"] != integers["line"] - 1:
        raise InputError.at(path, number, f"id {row['id']} is not line {row['line']} less 1")
    wrong = tuple(row["wrong"].split())
    if not row["right"] or not wrong or row["right"] in wrong:
        raise InputError.at(path, number, "needs a right form and at least one wrong form that differs from it")
    return Case(
        integers["id"], integers["position"], row["kind"], integers["distance"], row["right"], wrong, row["source_word"]
    )
