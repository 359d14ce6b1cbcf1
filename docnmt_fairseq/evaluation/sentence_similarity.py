"""How well vectors say which sentences mean the same: correlation with people's judgements ([Z] sec. 4.1)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
from scipy.stats import pearsonr

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.embedding.model import SentenceEmbedding
from docnmt_fairseq.errors import InputError

FORMS: Dict[str, Tuple[int, ...]] = {"sts": (0, 1, 2), "sts-benchmark": (4, 5, 6)}  # score, sentence, sentence
YEAR = 2  # column of sts-benchmark; it begins with it
SICK_COLUMNS = ("relatedness_score", "sentence_A", "sentence_B")


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs of sentences with the similarity that people gave them.

    Attributes:
        scores: [P].
        first, second: the sentences.
        years: of each pair, in sets that have pairs of several; else empty.
    """

    scores: np.ndarray
    first: List[str]
    second: List[str]
    years: List[str] = field(default_factory=list)

    def by_year(self) -> "Dict[str, JudgedPairs]":
        """The pairs of every year, in the years' order."""
        found = {}
        for year in sorted({*self.years}):
            rows = [row for row, own in enumerate(self.years) if own == year]
            first, second = ([side[row] for row in rows] for side in (self.first, self.second))
            found[year] = JudgedPairs(self.scores[rows], first, second)
        return found


def read_pairs(path: Path, form: str) -> JudgedPairs:
    """Reads a set's pairs.

    Args:
        path: a table with tabs between.
        form: ``sts``: score, sentence, sentence, no header; ``sts-benchmark``: genre, file, year, number, then the
            same; ``sick``: a header that names ``SICK_COLUMNS``.

    Raises:
        InputError: naming the line: a column is missing, a sentence is empty, a score is no number; fewer than two
            pairs, or all of one score.
    """
    lines = enumerate(read_lines(path, strip="\r\n"), start=1)
    columns = FORMS.get(form, ())
    if form == "sick":
        _, header = next(lines, (1, ""))
        names = header.split("\t")
        missing = [name for name in SICK_COLUMNS if name not in names]
        if missing:
            raise InputError.at(path, 1, f"the header lacks {', '.join(missing)}")
        columns = tuple(map(names.index, SICK_COLUMNS))
    years: List[str] = []
    scores, first, second = [], [], []
    for number, line in lines:
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) <= max(columns):
            raise InputError.at(
                path, number, f"{len(fields)} columns; expected at least {max(columns) + 1}, tabs between"
            )
        score, *sentences = (fields[column] for column in columns)
        try:
            scores.append(float(score))
        except ValueError:
            raise InputError.at(path, number, f"the score '{score}' is no number") from None
        if not np.isfinite(scores[-1]) or not all(sentences):
            raise InputError.at(path, number, "the score is not finite" if all(sentences) else "a sentence is empty")
        years += [fields[YEAR][:4]] if form == "sts-benchmark" else []
        first.append(sentences[0])
        second.append(sentences[1])
    if len(set(scores)) < 2:
        raise InputError(f"{path}: needs pairs of at least two different scores")
    return JudgedPairs(np.array(scores), first, second, years)


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The cosine of each pair of rows, [P]; 0 where one is zero."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.einsum("pd,pd->p", first, second) / np.where(lengths > 0, lengths, 1)


def correlation(embedding: SentenceEmbedding, pairs: JudgedPairs, tokens: Callable[[List[str]], List[str]]) -> float:
    """Pearson's r × 100 between cosines and scores.

    Args:
        embedding: gives the vectors.
        pairs: the set.
        tokens: from sentences to their tokens with spaces between, as the model's corpus has them.

    Raises:
        InputError: all pairs have the same cosine, or one score.
    """
    found = _correlation(embedding, pairs, tokens)
    if found is None:
        raise InputError("all pairs have the same cosine, or one score: are the words of the set those of the vectors?")
    return found


def _correlation(
    embedding: SentenceEmbedding, pairs: JudgedPairs, tokens: Callable[[List[str]], List[str]]
) -> Optional[float]:
    """The same; None where there is none, as all pairs have one cosine or one score."""
    vectors = (embedding.embed(embedding.vocabulary.encode(tokens(side))) for side in (pairs.first, pairs.second))
    found = cosines(*(part.astype(np.float64) for part in vectors))
    if np.ptp(found) == 0 or np.ptp(pairs.scores) == 0:
        return None
    return 100 * float(pearsonr(found, pairs.scores).statistic)


def compare(
    models: Sequence[Tuple[str, SentenceEmbedding]], pairs: JudgedPairs, tokens: Callable[[List[str]], List[str]]
) -> List[List[str]]:
    """A table of models, their methods, and Pearson's r × 100 of each, also year by year where there are several.

    A year has none whose pairs have all one score, or one cosine.
    """
    by_year = pairs.by_year()
    rows = [["model", "method", "words known", "r × 100", *by_year]]
    for name, model in models:
        words = model.vocabulary.encode(tokens([*pairs.first, *pairs.second]))
        known = (words.ids < len(model.words)).mean() if len(words.ids) else 0.0
        of_years = [_correlation(model, some, tokens) for some in by_year.values()]
        found = [f"{correlation(model, pairs, tokens):.1f}", *("–" if r is None else f"{r:.1f}" for r in of_years)]
        rows.append([name, model.settings.method, f"{100 * known:.1f} %", *found])
    return rows
