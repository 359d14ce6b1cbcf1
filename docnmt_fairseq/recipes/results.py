"""What a recipe finds out about its trained models: translations of its test sets, their scores, differences."""

from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.corpus.steps import Steps, sha256
from docnmt_fairseq.corpus.text_codec import joins_of, tokenizers_of
from docnmt_fairseq.evaluation.postprocess import read_translation
from docnmt_fairseq.evaluation.texts import References, read_references, read_text
from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.result_files import ResultFiles, read_json, write_json
from docnmt_fairseq.recipes.scoring import Scores, compared, metric_scores, metrics_of, scores_of
from docnmt_fairseq.recipes.training import translate
from docnmt_fairseq.translate.view import DOCUMENT_TASK, DocumentView


def seen(view: DocumentView) -> Dict[str, Any]:
    """What a view adds to the inputs of a step: nothing, where it is that of training."""
    return {"view": view.given} if view.given else {}


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

    def text_of(self, test_set: str) -> Tuple[Path, Path]:
        """Source and target of a test set, as prepared."""
        split, text = self.dataset.test_sets[test_set], self.data / "text"
        return text / f"{split}.{self.options['source_lang']}", text / f"{split}.{self.options['target_lang']}"

    def digests(self, test_set: str) -> List[str]:
        """What stands for a test set: the text of all its sides, as prepared, and its features."""
        split = self.dataset.test_sets[test_set]
        features = [self.data / f"{split}.{name}.npy" for name in self.dataset.features]
        return [sha256(file) for file in [*sorted((self.data / "text").glob(f"{split}.*")), *features]]

    def references(self, test_set: str) -> References:
        """A test set, as prepared."""
        source, target = self.text_of(test_set)
        return read_references([target], source)

    def view_of(self, chosen: Model) -> DocumentView:
        """How a model sees documents in translation: those that see them at all, whole or in pieces."""
        return self.dataset.view if chosen.task == DOCUMENT_TASK and chosen.sees_context else DocumentView()

    def translate(self, folder: Path, chosen: Model, tokens: int, machine: Machine) -> None:
        """Translates the test sets with a model and scores them: ``generate.log``, ``test.txt``, ``scores.json``.

        Args:
            folder: of the model.
            chosen: what it is.
            tokens: of a batch.
            machine: on what.

        Raises:
            InputError: it failed.
        """
        joins = None if self.options["edits_of"] else joins_of(self.options)
        trained = read_json(folder / "training.json")
        view = self.view_of(chosen)
        for test_set, split in self.dataset.test_sets.items():
            files = ResultFiles(folder, test_set)
            inputs = {"model": trained, "text": self.digests(test_set), **seen(view)}
            log = files.named("generate.log")
            action = partial(
                translate, self.data / "data-bin", split, folder, log, chosen, tokens, joins, machine, view
            )
            self.steps.run(files.step("translate"), inputs, [log], action)
            self._score(files, log)

    def _score(self, files: ResultFiles, log: Path) -> None:
        scores = files.named("scores.json")

        def action() -> None:
            found = read_translation(self.data, self.dataset.test_sets[files.test_set], log)
            values = scores_of(found, post_editing=self.dataset.post_edits_of is not None)
            atomic_write_bytes(files.text, "".join(f"{line}\n" for line in found.text).encode())
            write_json(scores, {**values, **self.further_scores(files)})

        inputs = {"log": sha256(log), "text": self.digests(files.test_set), **self.further_inputs()}
        self.steps.run(files.step("score"), inputs, [files.text, scores], action)

    def further_inputs(self) -> Dict[str, Any]:
        """What the scores of further metrics depend on beside the translation; nothing if there are none."""
        if not self.dataset.scores.metrics:
            return {}
        files = {file: sha256(path) for file, path in self.paths.items()}
        return {"metrics": [self.dataset.scores.metrics, self.dataset.scores.options], "files": files}

    def further_scores(self, files: ResultFiles) -> Scores:
        """The scores of a translation by further metrics, under ``metrics``; nothing if there are none.

        Args:
            files: where the text is.

        Raises:
            InputError: a metric lacks something.
        """
        if not self.dataset.scores.metrics:
            return {}
        references = self.references(files.test_set)
        metrics = metrics_of(self.dataset.scores, files.test_set, references, self.paths, self.smoke)
        return {"metrics": metric_scores(metrics, read_text(files.text, references, "score"), self.paths)}

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
                files = ResultFiles(folder, test_set)
                texts, written = [ResultFiles(baseline, test_set).text, files.text], files.named("significance.json")
                action = partial(self._compare, references, texts, written)
                inputs = {"texts": [sha256(text) for text in texts], "reference": sha256(references.files[0])}
                self.steps.run(files.step("significance"), inputs, [written], action)

    def _compare(self, references: References, texts: List[Path], written: Path) -> None:
        baseline, translation = (read_text(text, references, "score") for text in texts)
        found = compared(references, baseline, translation, tokenizers_of(self.options)[1])
        write_json(written, {"baseline": texts[0].parent.name, **found})


def read_scores(files: ResultFiles, significance: bool) -> Scores:
    """The scores of a model on a test set.

    Args:
        files: of both.
        significance: with what a test says, under ``significance``, where the test set has several documents.
    """
    scores: Scores = read_json(files.named("scores.json"))
    test = files.named("significance.json")
    if significance and test.exists():
        scores["significance"] = read_json(test)
    return scores
