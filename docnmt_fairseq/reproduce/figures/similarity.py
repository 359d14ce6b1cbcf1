"""Figures ``similarity``: correlation of sentence vectors with human similarity judgements ([Z] sec. 4.1)."""

from functools import cache
from pathlib import Path
from typing import Dict, List

import numpy as np

from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.embedding import Settings
from docnmt_fairseq.embedding.model import fit
from docnmt_fairseq.embedding.words import WordVectors, read_text_vectors
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.sentence_similarity import JudgedPairs, correlation, read_pairs
from docnmt_fairseq.files import write_bytes
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures

VECTORS = "glove.6B.200d.txt"
FILES = {  # by data set: training and test pairs, and their format
    "sts": ("sts-train.csv", "sts-test.csv", "sts-benchmark"),
    "sick": ("SICK_train.txt", "SICK_test_annotated.txt", "sick"),
}
ITERATIONS = 100
YEARS = ("2012", "2013", "2014", "2015", "2016")


@FIGURES.register("similarity")
class Similarity(Figures):
    """Pearson's r × 100 between cosines and judgements, of a method on a data set or a year of STS.

    Models are fitted on the sentences of the training pairs. Word vectors and pairs are files of ``--raw``.
    """

    settings = ("set", "year", "method", "iterations")

    def values(self) -> Dict[Cell, List[float]]:
        """Our figures; deterministic, so that all seeds are equal."""
        if self.request.smoke:
            _write_synthetic(self._raw)
        return {cell: [self._correlation(cell)] * len(self.request.seeds) for cell in self.cells}

    @property
    def _raw(self) -> Path:
        if self.request.smoke:
            return self.request.output / "made-up-pairs"
        if self.request.raw is None:
            raise InputError(f"--raw: give a folder with {VECTORS}, {', '.join(FILES['sts'][:2] + FILES['sick'][:2])}")
        return self.request.raw

    def _correlation(self, cell: Cell) -> float:
        train, test = (self._pairs(cell, part) for part in (0, 1))
        corpus = self.request.output / "similarity" / f"{cell.settings['set']}{cell.settings.get('year', '')}.txt"
        write_bytes(corpus, "".join(f"{line}\n" for line in _tokens([*train.first, *train.second])).encode())
        iterations = int(cell.settings.get("iterations", ITERATIONS))
        model = fit(self._vectors(), [corpus], Settings(cell.settings["method"], iterations, lowercase=True))
        return correlation(model, test, _tokens)

    def _pairs(self, cell: Cell, part: int) -> JudgedPairs:
        """Returns the pairs of a cell's training or test set."""
        *names, form = FILES[cell.settings["set"]]
        pairs, year = self._read(names[part], form), cell.settings.get("year")
        if year is None:
            return pairs
        by_year = pairs.by_year()
        if str(year) not in by_year:
            raise InputError(f"{names[part]}: no pairs of {year}; years: {', '.join(by_year)}")
        return by_year[str(year)]

    @cache  # noqa: B019  (lives as long as the run)
    def _read(self, name: str, form: str) -> JudgedPairs:
        return read_pairs(self._raw / name, form)

    @cache  # noqa: B019  (see above)
    def _vectors(self) -> WordVectors:
        return read_text_vectors(self._raw / VECTORS)


def _tokens(sentences: List[str]) -> List[str]:
    return list(map(tokenizer("moses", "en"), sentences))


def _write_synthetic(folder: Path) -> None:
    """Writes word vectors, and pairs whose score is the number of common words."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    words = [f"word{letter}" for letter in "abcdefghijklmnop"]
    vectors = "".join(f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=6) + 1)}\n" for word in words)
    (folder / VECTORS).write_text(vectors, encoding="utf-8")
    for name, (train, test, form) in FILES.items():
        for file in (train, test):
            rows = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\n"] if name == "sick" else []
            for number in range(60):
                first, second = (rng.choice(words, 5, replace=False) for _ in range(2))
                score, sentences = len({*first} & {*second}), (" ".join(first), " ".join(second))
                year = YEARS[number % len(YEARS)]
                start = ("genre", "file", year, str(number), str(score)) if form != "sick" else (str(number),)
                end = () if form != "sick" else (str(score),)
                rows.append("\t".join((*start, *sentences, *end)) + "\n")
            (folder / file).write_text("".join(rows), encoding="utf-8")
