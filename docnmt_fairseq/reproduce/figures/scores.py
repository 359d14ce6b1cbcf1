"""Figures of recipes: ``scores`` of models on the first test set, values of their ``training-log``, ``sentences``."""

import logging
import re
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from docnmt_fairseq.evaluation.metrics.meteor import Meteor, MeteorOptions
from docnmt_fairseq.evaluation.postprocess import Translation, read_translation, tokenized_sign_test
from docnmt_fairseq.evaluation.texts import read_references, read_text
from docnmt_fairseq.files import read_json, sha256
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig, read_dataset_config, recipe_path
from docnmt_fairseq.recipes.models import Model, model
from docnmt_fairseq.recipes.processes import last_value
from docnmt_fairseq.recipes.recipe import STEPS, UNEDITED, Recipe
from docnmt_fairseq.recipes.results import ResultFiles, reference_tokens, unedited_scores
from docnmt_fairseq.recipes.splits import further_references
from docnmt_fairseq.recipes.training import BEST, FINISHED, RECORD
from docnmt_fairseq.report import ReportOptions
from docnmt_fairseq.report.build import build_page
from docnmt_fairseq.report.results import read_curves
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures, recipe_options
from docnmt_fairseq.reproduce.drawing import Curve, draw_curves

BLEU = "bleu_tokens"  # over tokens, as multi-bleu.perl computes it
METEOR = "meteor"
TOKENS_PER_SECOND = 160_000  # target tokens, base width with conditional attention, one H100 (benchmarks/results/gpu)
TOKENS_PER_LINE = 16  # of a caption, including the end of sentence; used if --batch-size limits the lines
SMALL_UPDATES_PER_SECOND = 20  # of recurrent models with batches of some sentences, on a GPU; estimated
PAIRS_PER_SECOND = 2_500  # prepared pairs of 8 words: Moses tokens, truecased, BPE, data-bins, on one core

logger = logging.getLogger(__name__)


@FIGURES.register("scores")
class ScoresOfModels(Figures):
    """Score of a model of a recipe on its first test set, perhaps with further options.

    Each recipe has a folder in the output; a model that several cells or tables need is trained once. The model
    ``UNEDITED`` is the machine translation of a post-editing task.
    """

    settings: Tuple[str, ...] = ("recipe", "model", "options", "number", "score")
    last_step = STEPS[-1]  # of the recipes

    @cached_property
    def models(self) -> Dict[str, Dict[str, Model]]:
        """Models of the cells, by recipe and name."""
        found: Dict[str, Dict[str, Model]] = {cell.settings["recipe"]: {} for cell in self.cells}
        for cell in self.cells:
            if cell.settings["model"] != UNEDITED:
                found[cell.settings["recipe"]][model_name(cell)] = model_of(cell)
        return found

    def hours(self) -> float:
        """GPU hours of all trainings, each model once."""
        seconds = 0.0
        for recipe, models in self.models.items():
            dataset = _dataset(recipe)
            lines = last_value("--batch-size", [*dataset.training.options, *self.request.train_options])
            if models and dataset.training.start:
                seconds += dataset.training.start.updates * self.seconds_per_update(dataset.training.batch_tokens)
            for one in models.values():
                tokens = dataset.training.batch_tokens * one.sentences
                if lines is not None and dataset.prepare.get("one_document_a_line"):
                    tokens = min(tokens, int(lines) * TOKENS_PER_LINE)
                seconds += (self.request.updates or dataset.training.updates) * self.seconds_per_update(tokens)
        return len(self.request.seeds) * seconds / 3600

    def seconds_per_update(self, tokens: int) -> float:
        """Estimated seconds of an update with batches of so many target tokens on a GPU."""
        return tokens / TOKENS_PER_SECOND

    def values(self) -> Dict[Cell, List[float]]:
        for recipe, models in self.models.items():
            last = self.last_step if models else "prepare"
            Recipe(_dataset(recipe), recipe_options(self.request, recipe, tuple(models), last), models).run()
        cells = [cell for cell in self.cells if cell.settings.get("score") != METEOR or self._meteor(cell) is not None]
        return {cell: [self._score(cell, seed) for seed in self.request.seeds] for cell in cells}

    def _meteor(self, cell: Cell) -> Optional[Path]:
        """Returns the program of METEOR in the recipe's ``--raw``; None, with a message, if there is none."""
        raw = recipe_options(self.request, cell.settings["recipe"]).raw
        found = None if raw is None else next(iter(sorted(raw.rglob("meteor*.jar"))), None)
        if found is None:
            logger.warning(f"{cell.row}, {cell.column}: not computed: --raw has no meteor-1.5.jar of its authors")
        return found

    def origin(self, cell: Cell) -> str:
        """Training of the model, its data set and the first digits of the SHA-256 of its source text."""
        recipe = cell.settings["recipe"]
        data = self.request.output / recipe / "data"
        text = data / "text" / f"train.{_dataset(recipe).source_lang}"
        count = read_json(data / "manifest.json")["counts"]["train"]["sentences"]
        of_data = f"{recipe}, {count:,} sentences, {sha256(text)[:8]}"
        if cell.settings["model"] == UNEDITED:
            return f"not trained; {of_data}"
        folder = self._folder(recipe, model_name(cell), self.request.seeds[-1])
        file = folder / FINISHED if (folder / FINISHED).exists() else folder / RECORD
        return f"trained until {date.fromtimestamp(file.stat().st_mtime)} on {of_data}"

    def draw(self, name: str) -> List[Path]:
        """Learning curves of each recipe, and attention to several sources ([L] Fig. 1 and 2)."""
        pictures = []
        for recipe in self.models:
            cells = {model_name(cell): cell for cell in self.cells if cell.settings["recipe"] == recipe}
            models = Counter(cell.row for cell in cells.values())
            curves = {
                cell.row if models[cell.row] == 1 else f"{cell.row}, {cell.column}": curve
                for cell in cells.values()
                if (curve := self._curve(cell, "valid", "loss"))
            }
            if curves:
                path = self.request.output / f"{name}-{recipe}-loss.png"
                pictures.append(draw_curves(path, curves, "update", "loss on the development set"))
            for model_of_cell, cell in cells.items():
                best = self._folder(recipe, model_of_cell, self.request.seeds[0]) / BEST
                if cell.row == "hierarchical" and best.exists():
                    pictures.append(self.request.output / f"{name}-{recipe}-sources.png")
                    data = self.request.output / recipe / "data"
                    build_page(ReportOptions(best, data, source_weights=pictures[-1]))
        return pictures

    def _curve(self, cell: Cell, data: str, quantity: str) -> Curve:
        """Update and value of every entry in the training log of the first seed; empty without a training."""
        if cell.settings["model"] == UNEDITED:
            return []
        log = self._folder(cell.settings["recipe"], model_name(cell), self.request.seeds[0]) / "train.log"
        return read_curves(log, [quantity]).get(quantity, {}).get(data, []) if log.exists() else []

    def p_values(self, baseline: str) -> Dict[Cell, List[float]]:
        """Sign test of Collins et al. (2005) with BLEU over tokens."""
        scored = [cell for cell in self.cells if cell.settings.get("score", BLEU) == BLEU]
        of_column = {cell.column: cell for cell in scored if cell.row == baseline}
        return {
            cell: [self._p_value(cell, of_column[cell.column], seed) for seed in self.request.seeds]
            for cell in scored
            if cell.row != baseline and cell.column in of_column
        }

    def _p_value(self, cell: Cell, baseline: Cell, seed: int) -> float:
        one, other = self._translation(cell, seed), self._translation(baseline, seed)
        data = self.request.output / cell.settings["recipe"] / "data"
        further = further_references(_dataset(cell.settings["recipe"]), data, TEST)
        return tokenized_sign_test(one.tokens, other.tokens, one.reference_tokens, *reference_tokens(data, further))

    def _translation(self, cell: Cell, seed: int) -> Translation:
        recipe = cell.settings["recipe"]
        log = ResultFiles(self._folder(recipe, model_name(cell), seed), TEST).named("generate.log")
        return read_translation(self.request.output / recipe / "data", _dataset(recipe).test_sets[TEST], log)

    def _folder(self, recipe: str, name: str, seed: int) -> Path:
        return self.request.output / recipe / "models" / f"{name}-{seed}"

    def _score(self, cell: Cell, seed: int) -> float:
        recipe, name = cell.settings["recipe"], cell.settings.get("score", BLEU)
        dataset = _dataset(recipe)
        if cell.settings["model"] == UNEDITED:
            data = self.request.output / recipe / "data"
            return float(unedited_scores(data, dataset.test_sets[TEST], str(dataset.post_edits_of))[name])
        files = ResultFiles(self._folder(recipe, model_name(cell), seed), TEST)
        if name == METEOR:
            text = self.request.output / recipe / "data" / "text" / f"{dataset.test_sets[TEST]}.{dataset.target_lang}"
            references = read_references([text])
            metric = Meteor(references, MeteorOptions(str(self._meteor(cell)), dataset.target_lang))
            return metric.corpus_score(metric.statistics(read_text(files.text, references)))
        scores = files.scores(dataset)
        return float(scores[name] if name in scores else scores["metrics"][name]["score"])


@FIGURES.register("training-log")
class LogOfModels(ScoresOfModels):
    """Last value of a quantity in the log of a training: ``logged: training top5_accuracy``; nothing is translated."""

    settings = ("recipe", "model", "options", "logged")
    last_step = "train"

    def seconds_per_update(self, tokens: int) -> float:
        """Batches of 16 sentences take as long as those of a GPU's smallest reasonable size; an estimate."""
        return 1 / SMALL_UPDATES_PER_SECOND

    def _score(self, cell: Cell, seed: int) -> float:
        log = self._folder(cell.settings["recipe"], model_name(cell), seed) / "train.log"
        data, quantity = cell.settings["logged"].split()
        return read_curves(log, [quantity])[quantity][data][-1][1]

    def draw(self, name: str) -> List[Path]:
        """Curves of each column."""
        pictures = []
        for column in dict.fromkeys(cell.column for cell in self.cells):
            cells = [cell for cell in self.cells if cell.column == column]
            curves = {cell.row: self._curve(cell, *cell.settings["logged"].split()) for cell in cells}
            title = re.sub(r"[^\w.-]+", "-", column)
            path = self.request.output / f"{name}-{title}.png"
            pictures.append(draw_curves(path, curves, "update", column))
        return pictures


@FIGURES.register("sentences")
class SentencesOfSplits(Figures):
    """Size of a split of a recipe; nothing is trained."""

    settings = ("recipe", "split")
    processor = "CPU"

    def hours(self) -> float:
        """CPU hours for the published numbers, without downloads."""
        configs = map(_dataset, self._recipes())
        pairs = sum(sum(one.published.sentences.values()) for one in configs if one.published)
        return pairs / PAIRS_PER_SECOND / 3600

    def values(self) -> Dict[Cell, List[float]]:
        counts = {}
        for name in self._recipes():
            recipe = Recipe(_dataset(name), recipe_options(self.request, name, stop_after="prepare"))
            recipe.run()
            counts[name] = read_json(recipe.output / "data" / "manifest.json")["counts"]
        return {cell: [counts[cell.settings["recipe"]][cell.settings["split"]]["sentences"]] for cell in self.cells}

    def _recipes(self) -> List[str]:
        return list(dict.fromkeys(cell.settings["recipe"] for cell in self.cells))


@cache
def _dataset(recipe: str) -> DatasetConfig:
    return read_dataset_config(recipe_path(recipe))


def model_of(cell: Cell) -> Model:
    """Returns the model of a cell; the options of the cell take precedence."""
    known = model(cell.settings["model"], f"{cell.row}: model")
    return replace(known, options=lambda updates: [*known.options(updates), *_options(cell)])


def _options(cell: Cell) -> List[str]:
    """Further options of a cell, in which ``{number}`` is the number of its column."""
    return [word.format(number=cell.settings.get("number")) for word in cell.settings.get("options", [])]


def model_name(cell: Cell) -> str:
    """Returns the folder name of a cell's model; equal models have equal names."""
    return re.sub(r"[^\w.-]+", "_", "".join([cell.settings["model"], *_options(cell)]))
