"""Figures ``similarity``: correlation of sentence vectors with human similarity judgements ([Z] sec. 4.1)."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Dict, List

import numpy as np

from docnmt_fairseq.corpus.tokenizers import tokenizer
from docnmt_fairseq.embedding import Settings
from docnmt_fairseq.embedding.methods import fit_context_vector
from docnmt_fairseq.embedding.model import SentenceEmbedding, fit
from docnmt_fairseq.embedding.words import WordVectors, read_text_vectors
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.sentence_similarity import JudgedPairs, correlation, read_pairs
from docnmt_fairseq.files import write_bytes
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures
from docnmt_fairseq.reproduce.drawing import Curve, draw_curves

VECTORS = "glove.6B.200d.txt"
FILES = {  # by data set: training and test pairs, and their format
    "sts": ("sts-train.csv", "sts-test.csv", "sts-benchmark"),
    "sick": ("SICK_train.txt", "SICK_test_annotated.txt", "sick"),
}
ITERATIONS = 100
SHOWN = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70)  # iterations whose accuracy is drawn, and the last one
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

    def draw(self, name: str) -> List[Path]:
        """Energy and accuracy of CA-SEM by iteration ([Z] Fig. 7 and 8)."""
        energies: Dict[str, Curve] = {}
        accuracies: Dict[str, Curve] = {}
        for cell in (cell for cell in self.cells if cell.settings["method"] == "ca-sem"):
            model, test = self._fitted(cell), self._pairs(cell, 1)
            energy = fit_context_vector(model.vectors, model.counts, model.settings.iterations)[1] / model.counts.sum()
            energies[cell.row] = list(enumerate(energy.tolist()))
            shown = [number for number in SHOWN if number < len(energy)] + [len(energy) - 1]
            of_iterations = ((number, fit_context_vector(model.vectors, model.counts, number)[0]) for number in shown)
            accuracies[cell.row] = [
                (number, correlation(replace(model, learnt=learnt.astype(np.float32)), test, _tokens))
                for number, learnt in of_iterations
            ]
        if not energies:
            return []
        output = self.request.output
        return [
            draw_curves(output / f"{name}-energy.png", energies, "iteration", "energy of eq. 17 per word"),
            draw_curves(output / f"{name}-accuracy.png", accuracies, "iteration", "Pearson's r × 100"),
        ]

    def _correlation(self, cell: Cell) -> float:
        return correlation(self._fitted(cell), self._pairs(cell, 1), _tokens)

    def _fitted(self, cell: Cell) -> SentenceEmbedding:
        """Returns the model of a cell, fitted on the sentences of its training pairs."""
        train = self._pairs(cell, 0)
        corpus = self.request.output / "similarity" / f"{cell.settings['set']}{cell.settings.get('year', '')}.txt"
        write_bytes(corpus, "".join(f"{line}\n" for line in _tokens([*train.first, *train.second])).encode())
        iterations = int(cell.settings.get("iterations", ITERATIONS))
        return fit(self._vectors(), [corpus], Settings(cell.settings["method"], iterations, lowercase=True))

    def _pairs(self, cell: Cell, part: int) -> JudgedPairs:
        """Returns the pairs of a cell's training or test set."""
        *names, form = FILES[cell.settings["set"]]
        pairs, year = self._read(names[part], form), cell.settings.get("year")
        return pairs if year is None else pairs.by_year()[str(year)]

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
