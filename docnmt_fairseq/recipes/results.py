"""Results of trained models: translations of the test sets, scores, significance tests and probes of context use."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import SidePipeline
from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.evaluation.postprocess import read_translation
from docnmt_fairseq.evaluation.texts import References, read_references, read_text
from docnmt_fairseq.files import read_json, sha256, write_bytes, write_json
from docnmt_fairseq.recipes import probes
from docnmt_fairseq.recipes.dataset import NO_CONTEXT, SHUFFLED, TEST, DatasetConfig
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.scoring import (
    Scores,
    bleu_significance,
    make_metrics,
    metric_scores,
    text_scores,
    translation_scores,
)
from docnmt_fairseq.recipes.training import BEST, RECORD, translate
from docnmt_fairseq.translate.view import DOCUMENT_TASK, DocumentView


@dataclass(frozen=True)
class ResultFiles:
    """Result files of a model on a test set.

    Attributes:
        folder: folder of the model.
        test_set: name of the test set.
        context: false context that the model was given; "": the true context.
    """

    folder: Path
    test_set: str
    context: str = ""

    @property
    def text(self) -> Path:
        """Translation: ``test.txt``, ``unseen.txt``, ``test.shuffled.txt``."""
        return self.folder / ".".join(filter(None, (self.test_set, self.context, "txt")))

    def named(self, name: str) -> Path:
        """Another file: ``scores.json``, ``scores.unseen.json``, ``scores.unseen.shuffled.json``."""
        path = self.folder / name
        return path.with_suffix("".join(f".{part}" for part in self._parts) + path.suffix)

    def step(self, name: str) -> str:
        """Name of a step that writes these files."""
        return "/".join((name, self.folder.name, *self._parts))

    @property
    def _parts(self) -> List[str]:
        return [part for part in ("" if self.test_set == TEST else self.test_set, self.context) if part]


class Results:
    """Computes the results of models on the test sets, in the folders of the models.

    Args:
        dataset: configuration.
        steps: step cache of the recipe; its folder holds ``data``.
        manifest: manifest of the prepared data.
        paths: files of the data set by name.
        machine: device.
        smoke: metrics may have nothing to score.
    """

    def __init__(
        self,
        dataset: DatasetConfig,
        steps: StepCache,
        manifest: Mapping[str, Any],
        paths: Mapping[str, Path],
        machine: Machine,
        smoke: bool,
    ):
        self.dataset, self.steps, self.machine, self.smoke = dataset, steps, machine, smoke
        self.data, self.options = steps.folder / "data", manifest["options"]
        self.target = SidePipeline.from_options(self.options, 1)
        self.paths = {file: paths[file] for file in dataset.scores.files}

    def check(self) -> None:
        """Creates all metrics once, so that missing input is reported before the training.

        Raises:
            InputError: missing or invalid input of a metric.
        """
        if self.dataset.scores.metrics:
            for test_set in self.dataset.test_sets:
                make_metrics(self.dataset.scores, test_set, self.references(test_set), self.paths, self.smoke)

    def references(self, test_set: str) -> References:
        """Returns the prepared test set."""
        source, target = self._texts(test_set)
        return read_references([target], source)

    def translate(self, folder: Path, chosen: Model, tokens: int) -> None:
        """Translates and scores the test sets: ``generate.log``, ``test.txt``, ``scores.json``.

        Args:
            folder: folder of the model.
            chosen: trained model.
            tokens: tokens per batch.

        Raises:
            InputError: the translation failed.
        """
        joins, view = None if self.options["edits_of"] else self.target.joiner, self._view(chosen)
        for test_set, split in self.dataset.test_sets.items():
            files = ResultFiles(folder, test_set)
            inputs = {**self._model_inputs(folder, view), "text": self._text_hashes(test_set)}
            log, bins = files.named("generate.log"), self.data / "data-bin"
            action = partial(translate, bins, split, folder, log, chosen, tokens, joins, self.machine, view)
            self.steps.run(files.step("translate"), inputs, [log], action)
            inputs = {"log": sha256(log), "text": self._text_hashes(test_set), **self._metric_inputs()}
            outputs = [files.text, files.named("scores.json")]
            self.steps.run(files.step("score"), inputs, outputs, partial(self._score, files, log))

    def _score(self, files: ResultFiles, log: Path) -> None:
        translation = read_translation(self.data, self.dataset.test_sets[files.test_set], log)
        scores = translation_scores(translation, post_editing=self.dataset.post_edits_of is not None)
        write_bytes(files.text, "".join(f"{line}\n" for line in translation.text).encode())
        write_json(files.named("scores.json"), {**scores, **self._extra_scores(files)}, indent=1)

    def compare(self, folder: Path, baseline: Path) -> None:
        """Tests the difference in BLEU from a baseline: ``significance.json``; needs several documents.

        Args:
            folder: folder of the model, translated.
            baseline: folder of the baseline, translated.
        """
        for test_set in self.dataset.test_sets:
            references = self.references(test_set)
            if references.documents > 1:
                files = ResultFiles(folder, test_set)
                texts, output = [ResultFiles(baseline, test_set).text, files.text], files.named("significance.json")
                action = partial(self._compare, references, texts, output)
                inputs = {"texts": [sha256(text) for text in texts], "reference": sha256(references.files[0])}
                self.steps.run(files.step("significance"), inputs, [output], action)

    def _compare(self, references: References, texts: List[Path], output: Path) -> None:
        baseline, translation = (read_text(text, references, "score") for text in texts)
        outcome = bleu_significance(references, baseline, translation, self.target.tokenizer)
        write_json(output, {"baseline": texts[0].parent.name, **outcome}, indent=1)

    def probe(self, folder: Path, chosen: Model, tokens: int) -> None:
        """Tests whether a model uses its context: ``test.shuffled.txt``, ``scores.shuffled.json``, …, ``cxmi.json``.

        Shuffled context comes from other documents, so that it needs several.

        Args:
            folder: folder of the model, trained.
            chosen: trained model.
            tokens: tokens per batch.

        Raises:
            InputError: a translation failed.
        """
        view, wanted = self._view(chosen), self.dataset.probes
        for test_set in self.dataset.test_sets:
            several = self.references(test_set).documents > 1
            for context in wanted.contexts:
                if several or context != SHUFFLED:
                    of_context = DocumentView() if context == NO_CONTEXT else view
                    self._translate_with(ResultFiles(folder, test_set, context), tokens, of_context)
            if several and wanted.cxmi_sentences is not None:
                self._measure_cxmi(ResultFiles(folder, test_set), wanted.cxmi_sentences, view)

    def _translate_with(self, files: ResultFiles, tokens: int, view: DocumentView) -> None:
        """Translates and scores a test set with false context."""
        source, reference = self._texts(files.test_set)
        inputs = {**self._model_inputs(files.folder, view), "text": sha256(source)}
        model, cpu = files.folder / BEST, self.machine.cpu
        action = partial(probes.translate, self.data, source, model, files.text, files.context, tokens, cpu, view)
        self.steps.run(files.step("translate"), inputs, [files.text], action)

        def score() -> None:
            text, wanted = (list(read_lines(path)) for path in (files.text, reference))
            scores = text_scores(text, wanted, self.target.tokenizer)
            write_json(files.named("scores.json"), {**scores, **self._extra_scores(files)}, indent=1)

        inputs = {"text": sha256(files.text), "test_set": self._text_hashes(files.test_set), **self._metric_inputs()}
        self.steps.run(files.step("score"), inputs, [files.named("scores.json")], score)

    def _measure_cxmi(self, files: ResultFiles, sentences: int, view: DocumentView) -> None:
        output, texts = files.named("cxmi.json"), self._texts(files.test_set)
        inputs = {
            **self._model_inputs(files.folder, view),
            "texts": [sha256(text) for text in texts],
            "sentences": sentences,
        }
        model, cpu = files.folder / BEST, self.machine.cpu
        action = partial(probes.measure_cxmi, self.data, *texts, model, output, sentences, cpu, view)
        self.steps.run(files.step("cxmi"), inputs, [output], action)

    # --- Inputs of the steps ---

    def _texts(self, test_set: str) -> Tuple[Path, Path]:
        """Source and target of a prepared test set."""
        split, text = self.dataset.test_sets[test_set], self.data / "text"
        return text / f"{split}.{self.options['source_lang']}", text / f"{split}.{self.options['target_lang']}"

    def _text_hashes(self, test_set: str) -> List[str]:
        """Hashes of all sides and features of a prepared test set."""
        split = self.dataset.test_sets[test_set]
        features = [self.data / f"{split}.{name}.npy" for name in self.dataset.features]
        return [sha256(file) for file in [*sorted((self.data / "text").glob(f"{split}.*")), *features]]

    def _model_inputs(self, folder: Path, view: DocumentView) -> Dict[str, Any]:
        return {"model": read_json(folder / RECORD), **({"view": view.given} if view.given else {})}

    def _view(self, chosen: Model) -> DocumentView:
        """Document view in translation; that of the training for models that see single sentences."""
        return self.dataset.document_view if chosen.task == DOCUMENT_TASK and chosen.sees_context else DocumentView()

    def _metric_inputs(self) -> Dict[str, Any]:
        """Inputs of the extra metrics in addition to the translation."""
        extra = self.dataset.scores
        if not extra.metrics:
            return {}
        files = {file: sha256(path) for file, path in self.paths.items()}
        return {"metrics": [extra.metrics, extra.options], "files": files}

    def _extra_scores(self, files: ResultFiles) -> Scores:
        extra = self.dataset.scores
        if not extra.metrics:
            return {}
        references = self.references(files.test_set)
        metrics = make_metrics(extra, files.test_set, references, self.paths, self.smoke)
        return {"metrics": metric_scores(metrics, read_text(files.text, references, "score"), self.paths)}


def read_scores(files: ResultFiles, significance: bool = False) -> Scores:
    """Reads the scores of a model on a test set.

    Args:
        files: result files.
        significance: include the significance test, if there is one.
    """
    scores: Scores = read_json(files.named("scores.json"))
    test = files.named("significance.json")
    if significance and test.exists():
        scores["significance"] = read_json(test)
    return scores


def read_probes(files: ResultFiles, dataset: DatasetConfig) -> Scores:
    """Reads the probes of a model on a test set, as far as they exist.

    Returns:
        ``contexts``: scores by context; ``cxmi``: nats per sentence by context; ``cxmi_sentences``: sample size.
    """
    scores = {context: replace(files, context=context).named("scores.json") for context in dataset.probes.contexts}
    found: Scores = {"contexts": {context: read_json(path) for context, path in scores.items() if path.exists()}}
    report = files.named("cxmi.json")
    if dataset.probes.cxmi_sentences is not None and report.exists():
        measured = read_json(report)
        found["cxmi"] = {probe: figures["cxmi"] for probe, figures in measured["probes"].items()}
        found["cxmi_sentences"] = measured["about"]["sentences"]
    return found
