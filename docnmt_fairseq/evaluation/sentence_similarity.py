"""Correlation of sentence vectors with human similarity judgements ([Z] sec. 4.1)."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Sequence, Tuple

import numpy as np
from scipy.stats import pearsonr

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.embedding.model import SentenceEmbedding

FORMS: Dict[str, Tuple[int, ...]] = {"sts": (0, 1, 2), "sts-benchmark": (4, 5, 6)}  # columns: score, two sentences
YEAR = 2  # column of sts-benchmark that starts with the year
SICK_COLUMNS = ("relatedness_score", "sentence_A", "sentence_B")

Tokenizer = Callable[[List[str]], List[str]]  # sentences to tokens joined by spaces, as in the model's corpus


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs of sentences with human similarity scores, [P]."""

    scores: np.ndarray
    first: List[str]
    second: List[str]
    years: List[str] = field(default_factory=list)  # of each pair; empty for sets of one year

    def by_year(self) -> "Dict[str, JudgedPairs]":
        """Pairs of each year, in order."""
        found = {}
        for year in sorted({*self.years}):
            rows = [row for row, other in enumerate(self.years) if other == year]
            first, second = ([side[row] for row in rows] for side in (self.first, self.second))
            found[year] = JudgedPairs(self.scores[rows], first, second)
        return found


def read_pairs(path: Path, form: str) -> JudgedPairs:
    """Reads a tab-separated set of pairs.

    Args:
        path: file.
        form: ``sts``: score, sentence, sentence, without header; ``sts-benchmark``: genre, file, year, number, then the
            same; ``sick``: header with ``SICK_COLUMNS``.
    """
    rows = [[text.strip() for text in line.split("\t")] for line in read_lines(path, strip="\r\n")]
    if form == "sick":
        header, *rows = rows
        columns = tuple(map(header.index, SICK_COLUMNS))
    else:
        columns = FORMS[form]
    scores, first, second = ([row[column] for row in rows] for column in columns)
    years = [row[YEAR][:4] for row in rows] if form == "sts-benchmark" else []
    return JudgedPairs(np.array(scores, dtype=np.float64), first, second, years)


def correlation(embedding: SentenceEmbedding, pairs: JudgedPairs, tokenize: Tokenizer) -> float:
    """Pearson's r × 100 between cosines and scores; NaN if all pairs have the same cosine or score."""
    vectors = (embedding.embed(embedding.vocabulary.encode(tokenize(side))) for side in (pairs.first, pairs.second))
    first, second = (part.astype(np.float64) for part in vectors)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    found = np.einsum("pd,pd->p", first, second) / np.where(lengths > 0, lengths, 1)  # 0 for zero vectors
    if np.ptp(found) == 0 or np.ptp(pairs.scores) == 0:
        return math.nan
    return 100 * float(pearsonr(found, pairs.scores).statistic)


def compare(
    models: Sequence[Tuple[str, SentenceEmbedding]], pairs: JudgedPairs, tokenize: Tokenizer
) -> List[List[str]]:
    """Table of models with Pearson's r × 100, overall and by year."""
    by_year = pairs.by_year()
    rows = [["model", "method", "words known", "r × 100", *by_year]]
    for name, model in models:
        words = model.vocabulary.encode(tokenize([*pairs.first, *pairs.second]))
        known = (words.ids < len(model.words)).mean() if len(words.ids) else 0.0
        correlations = [correlation(model, part, tokenize) for part in (pairs, *by_year.values())]
        cells = ["–" if math.isnan(r) else f"{r:.1f}" for r in correlations]
        rows.append([name, model.settings.method, f"{100 * known:.1f} %", *cells])
    return rows
