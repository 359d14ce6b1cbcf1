"""Table of undecidable words, one per row, and the best accuracy of a model that sees one sentence at a time.

The sentence of an undecidable word is drawn independently of the right form, so that it only determines the source
word. The best model without context answers every source word with its most frequent right form; its expected
accuracy is the share of that form (Bayes accuracy). Shares are counted on the train split; the largest of several
counted shares is on average slightly above the largest true share, so that the count is conservative.

On a finite split any guesser may exceed its expected accuracy. The words of one document share their deciding
sentences, so that their guesses are correlated, but documents are independent. ``upper_bound`` treats the words of a
document as one draw, the worst case: the split is worth ``(Σ m)² / Σ m²`` independent draws for m words per document,
and the bound is the accuracy that so many draws with the expected accuracy exceed with a probability below 0.1 %.
"""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

COLUMNS = ("line", "id", "position", "kind", "distance", "right", "wrong", "source_word")


@dataclass(frozen=True)
class Case:
    """One target word that its sentence does not determine.

    ``id`` is the sample id of the sentence in fairseq, its line number from 0; ``position`` the position of the word in
    the target sentence, from 0; ``distance`` the number of sentences back to the deciding one.
    """

    id: int
    position: int
    kind: str
    distance: int
    right: str
    wrong: Tuple[str, ...]
    source_word: str


def write_cases(path: Path, cases: Iterable[Case]) -> None:
    """Writes the table."""
    with path.open("w", encoding="utf-8") as file:
        print(*COLUMNS, sep="\t", file=file)
        for case in cases:
            wrong = " ".join(case.wrong)
            row = (case.id + 1, case.id, case.position, case.kind, case.distance, case.right, wrong, case.source_word)
            print(*row, sep="\t", file=file)


def read_cases(path: Path) -> List[Case]:
    """Reads a table written by :func:`write_cases`.

    Raises:
        InputError: it is missing or has no rows, or a row is malformed; names the line.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; write the corpus with docnmt synth")
    header, *lines = [*read_lines(path, strip="\r\n")] or [""]
    if header.split("\t") != list(COLUMNS):
        raise InputError.at(path, 1, f"expected the tab-separated header {' '.join(COLUMNS)}")
    if not lines:
        raise InputError(f"{path}: contains no rows; write the corpus again with more documents")
    cases = []
    for number, line in enumerate(lines, start=2):
        try:
            _, index, position, kind, distance, right, wrong, word = line.split("\t")
            cases.append(Case(int(index), int(position), kind, int(distance), right, tuple(wrong.split()), word))
        except ValueError as error:
            raise InputError.at(path, number, f"not a row of docnmt synth: {error}") from None
    return cases


LUCK = 0.001  # probability of exceeding the upper bound

Counts = Counter[Tuple[str, str, str]]  # of kind, source word, right form


def count_forms(counts: Counts, cases: Iterable[Case]) -> None:
    """Adds the right forms of cases to counts."""
    counts.update((case.kind, case.source_word, case.right) for case in cases)


def _largest_shares(counts: Counts) -> Dict[Tuple[str, str], float]:
    """Returns the share of the most frequent right form of each source word by kind."""
    forms: Dict[Tuple[str, str], List[int]] = {}
    for (kind, word, _), count in counts.items():
        forms.setdefault((kind, word), []).append(count)
    return {key: max(numbers) / sum(numbers) for key, numbers in forms.items()}


def ceiling(counts: Counts, documents: Sequence[Sequence[Case]]) -> Dict[str, Any]:
    """Returns the best accuracy without context on a split, by kind and overall.

    Args:
        counts: right forms of the train split.
        documents: cases of each document of the split.

    Returns:
        ``{"kinds": {kind: figures}, "overall": figures, "source_words": {word: share}}`` where figures are
        ``accuracy`` (expected at best), ``cases``, ``independent_draws`` and ``upper_bound``.

    Raises:
        InputError: the train split lacks a source word of the split, or the split has none.
    """
    if not any(documents):
        raise InputError("--sentences-per-document: no document has room for an undecidable word; give larger numbers")
    shares = _largest_shares(counts)
    for case in (case for document in documents for case in document):
        if (case.kind, case.source_word) not in shares:
            message = f"--train-documents: too few to contain the {case.kind} word '{case.source_word}'; give more"
            raise InputError(message)
    kinds = sorted({kind for kind, _ in shares})
    by_kind = {kind: [[case for case in document if case.kind == kind] for document in documents] for kind in kinds}
    return {
        "kinds": {kind: _figures(shares, cases) for kind, cases in by_kind.items() if any(cases)},
        "overall": _figures(shares, documents),
        "source_words": {word: share for (_, word), share in sorted(shares.items())},
    }


def _figures(shares: Mapping[Tuple[str, str], float], documents: Sequence[Sequence[Case]]) -> Dict[str, Any]:
    from scipy.stats import binom

    expected = [shares[case.kind, case.source_word] for document in documents for case in document]
    accuracy = math.fsum(expected) / len(expected)
    sizes = [len(document) for document in documents]
    draws = max(1, sum(sizes) ** 2 // sum(size * size for size in sizes))
    return {
        "accuracy": accuracy,
        "cases": len(expected),
        "independent_draws": draws,
        "upper_bound": float(binom.ppf(1 - LUCK, draws, accuracy)) / draws,
    }
