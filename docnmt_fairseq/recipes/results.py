"""What a recipe finds out about its trained models: translations of its test sets, their scores, differences."""

import json
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.corpus.steps import Steps, sha256
from docnmt_fairseq.corpus.text_codec import tokenizers_of
from docnmt_fairseq.evaluation.postprocess import read_translation
from docnmt_fairseq.evaluation.texts import References, read_references, read_text
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.scoring import Scores, compared, metric_scores, metrics_of, scores_of
from docnmt_fairseq.recipes.training import translate


class Results:
    """The results of models on the test sets, in their folders, below which each test set has files of its own.

    Args:
        dataset: its configuration.
        steps: of the recipe; their folder holds ``data``.
        manifest: of the prepared data.
        paths: where the data set's files are, by name.
        smoke: metrics may have nothing to score.
    """

    def __init__(
        self, dataset: DatasetConfig, steps: Steps, manifest: Mapping[str, Any], paths: Mapping[str, Path], smoke: bool
    ):
        self.dataset, self.steps, self.smoke = dataset, steps, smoke
        self.data, self.options = steps.folder / "data", manifest["options"]
        self.paths = {file: paths[file] for file in dataset.scores.files}

    def check(self) -> None:
        """Asks the metrics once, so that what they lack is said before anything is trained.

        Raises:
            InputError: something is missing or wrong.
        """
        if self.dataset.scores.metrics:
            for test_set in self.dataset.test_sets:
                metrics_of(self.dataset.scores, test_set, self.references(test_set), self.paths, self.smoke)

    def references(self, test_set: str) -> References:
        """A test set, as prepared."""
        split, options = self.dataset.test_sets[test_set], self.options
        text = [self.data / "text" / f"{split}.{options[side]}" for side in ("target_lang", "source_lang")]
        return read_references(text[:1], text[1])

    def translate(self, folder: Path, chosen: Model, tokens: int, cpu: bool) -> None:
        """Translates the test sets with a model and scores them: ``generate.log``, ``test.txt``, ``scores.json``.

        Args:
            folder: of the model.
            chosen: what it is.
            tokens: of a batch.
            cpu: without a GPU.

        Raises:
            InputError: it failed.
        """
        subwords = self.options["subwords"] != "none" and not self.options["edits_of"]
        trained = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        for test_set, split in self.dataset.test_sets.items():
            inputs, log = {"model": trained}, file_of(folder, "generate.log", test_set)
            if test_set != TEST:  # a training depends on the first one's counts, on no other's
                inputs["text"] = sha256(self.data / "subword" / f"{split}.{self.options['source_lang']}")
            action = partial(translate, self.data / "data-bin", split, folder, log, chosen, tokens, subwords, cpu)
            self.steps.run(_step("translate", folder, test_set), inputs, [log], action)
            self._score(folder, test_set, log)

    def _score(self, folder: Path, test_set: str, log: Path) -> None:
        text, scores = text_of(folder, test_set), file_of(folder, "scores.json", test_set)
        further = self.dataset.scores
        inputs: Dict[str, Any] = {"log": sha256(log)}
        if further.metrics:
            inputs["metrics"] = [further.metrics, further.options]
            inputs["files"] = {file: sha256(path) for file, path in self.paths.items()}

        def action() -> None:
            found = read_translation(self.data, self.dataset.test_sets[test_set], log)
            values = scores_of(found, post_editing=self.dataset.post_edits_of is not None)
            atomic_write_bytes(text, "".join(f"{line}\n" for line in found.text).encode())
            if further.metrics:
                references = self.references(test_set)
                metrics = metrics_of(further, test_set, references, self.paths, self.smoke)
                values["metrics"] = metric_scores(metrics, read_text(text, references, "score"), self.paths)
            _write(scores, values)

        self.steps.run(_step("score", folder, test_set), inputs, [text, scores], action)

    def compare(self, folder: Path, baseline: Path) -> None:
        """Writes what a test says of a model's BLEU beside another's: ``significance.json``.

        A test set of one document is left out: a test takes several.

        Args:
            folder: of the model, translated.
            baseline: of the other, translated.
        """
        for test_set in self.dataset.test_sets:
            references = self.references(test_set)
            if references.documents > 1:
                texts = [text_of(one, test_set) for one in (baseline, folder)]
                written = file_of(folder, "significance.json", test_set)
                action = partial(self._compare, references, texts, written)
                inputs = {"texts": [sha256(text) for text in texts], "reference": sha256(references.files[0])}
                self.steps.run(_step("significance", folder, test_set), inputs, [written], action)

    def _compare(self, references: References, texts: List[Path], written: Path) -> None:
        baseline, translation = (read_text(text, references, "score") for text in texts)
        found = compared(references, baseline, translation, tokenizers_of(self.options)[1])
        _write(written, {"baseline": texts[0].parent.name, **found})


def text_of(folder: Path, test_set: str) -> Path:
    """The translation of a test set, in a model's folder."""
    return folder / f"{test_set}.txt"


def file_of(folder: Path, name: str, test_set: str) -> Path:
    """Another file of a test set in a model's folder: ``scores.json``, or of a further one ``scores.unseen.json``."""
    path = folder / name
    return path if test_set == TEST else path.with_suffix(f".{test_set}{path.suffix}")


def read_scores(folder: Path, test_set: str, significance: bool) -> Scores:
    """The scores of a model on a test set.

    Args:
        folder: of the model.
        test_set: its name.
        significance: with what a test says, under ``significance``, where the test set has several documents.
    """
    scores: Scores = json.loads(file_of(folder, "scores.json", test_set).read_text(encoding="utf-8"))
    test = file_of(folder, "significance.json", test_set)
    if significance and test.exists():
        scores["significance"] = json.loads(test.read_text(encoding="utf-8"))
    return scores


def _step(what: str, folder: Path, test_set: str) -> str:
    return f"{what}/{folder.name}" + ("" if test_set == TEST else f"/{test_set}")


def _write(path: Path, values: Scores) -> None:
    atomic_write_bytes(path, (json.dumps(values, indent=1) + "\n").encode())
