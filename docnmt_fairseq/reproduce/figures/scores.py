"""Figures ``scores``: what the models of recipes score on their test sets."""

import re
from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.postprocess import Translation, read_translation
from docnmt_fairseq.evaluation.scores import tokenized_sign_test
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig
from docnmt_fairseq.recipes.dataset_file import read_dataset_config, recipe_path
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.results import read_scores
from docnmt_fairseq.recipes.run import Recipe
from docnmt_fairseq.recipes.scoring import Scores
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures
from docnmt_fairseq.reproduce.hours import training_hours

BLEU = "bleu_tokens"  # over tokens, as multi-bleu.perl computes it


@FIGURES.register("scores")
class ScoresOfModels(Figures):
    """A cell is a model of a recipe, perhaps with more options, and one of its scores on the first test set.

    Data and models of a recipe are in its own folder of the output: a model that several cells or tables have is
    trained once.
    """

    settings = ("recipe", "model", "options", "score")
    heeds = ("--size", "--updates", "--train-options")

    @cached_property
    def models(self) -> Dict[str, Dict[str, Model]]:
        """The models of the cells by recipe and name."""
        found: Dict[str, Dict[str, Model]] = defaultdict(dict)
        for cell in self.cells:
            found[cell.settings["recipe"]][model_name(cell)] = model_of(cell)
        return dict(found)

    def hours(self) -> float:
        """See :class:`Figures`: of all trainings, those that are done among them; each model once."""
        return sum(
            training_hours(self._dataset(recipe), one, self.request, self._folder(recipe, name, seed))
            for recipe, models in self.models.items()
            for name, one in models.items()
            for seed in self.request.seeds
        )

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`."""
        for name, models in self.models.items():
            options = self.request.of_recipe(self.request.output / name, tuple(models))
            Recipe(self._dataset(name), options, models).run()
        return {cell: [self._score(cell, seed) for seed in self.request.seeds] for cell in self.cells}

    def p_values(self, baseline: str) -> Dict[Cell, List[float]]:
        """See :class:`Figures`: the sign test of Collins et al. (2005) by BLEU over tokens, where that is the score."""
        scored = [cell for cell in self.cells if cell.settings.get("score", BLEU) == BLEU]
        of_column = {cell.column: cell for cell in scored if cell.row == baseline}
        return {
            cell: [self._p_value(cell, of_column[cell.column], seed) for seed in self.request.seeds]
            for cell in scored
            if cell.row != baseline and cell.column in of_column
        }

    def _p_value(self, cell: Cell, baseline: Cell, seed: int) -> float:
        one, other = self._translation(cell, seed), self._translation(baseline, seed)
        return tokenized_sign_test(one.tokens, other.tokens, one.reference_tokens)

    def _translation(self, cell: Cell, seed: int) -> Translation:
        recipe = cell.settings["recipe"]
        log = ResultFiles(self._folder(recipe, model_name(cell), seed), TEST).named("generate.log")
        split = self._dataset(recipe).test_sets[TEST]
        return read_translation(self.request.output / recipe / "data", split, log)

    def _dataset(self, recipe: str) -> DatasetConfig:
        return read_dataset_config(recipe_path(recipe))

    def _folder(self, recipe: str, name: str, seed: int) -> Path:
        return self.request.output / recipe / "models" / f"{name}-{seed}"

    def _score(self, cell: Cell, seed: int) -> float:
        recipe, name = cell.settings["recipe"], cell.settings.get("score", BLEU)
        scores = read_scores(ResultFiles(self._folder(recipe, model_name(cell), seed), TEST), significance=False)
        value = score_of(scores, name)
        if value is None:
            raise InputError(
                f"{cell.row}, {cell.column}: recipe {recipe} has no score {name}; there are {_names(scores)}"
            )
        return value


def model_of(cell: Cell) -> Model:
    """The model of a cell; its options come last and win."""
    known = model(cell.settings["model"], f"{cell.row}: model")
    more = cell.settings.get("options", [])
    return replace(known, options=lambda updates: [*known.options(updates), *more])


def model_name(cell: Cell) -> str:
    """What the model's folder is called: equal models have equal names."""
    return re.sub(r"[^\w.-]+", "_", "".join([cell.settings["model"], *cell.settings.get("options", [])]))


def score_of(scores: Scores, name: str) -> Optional[float]:
    """A score of a recipe's model, or that of a further metric of the recipe."""
    further: Mapping[str, Any] = scores.get("metrics", {}).get(name, {})
    return scores.get(name, further.get("score"))


def _names(scores: Scores) -> str:
    own = [name for name, value in scores.items() if isinstance(value, float)]
    return ", ".join([*own, *scores.get("metrics", {})])
