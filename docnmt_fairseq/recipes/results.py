"""Results of trained models: translations of the test sets, scores, significance tests and probes of context use."""

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.pipeline import TOKENIZED, TRUECASED, SidePipeline
from docnmt_fairseq.corpus.prepared import manifest_options
from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.base import Metric, column_sums
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import Bleu, BleuOptions
from docnmt_fairseq.evaluation.postprocess import (
    Translation,
    corpus_scores,
    human_targeted_error_rate,
    read_text_as_translation,
    read_translation,
    tokenized_bleu,
)
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import References, Stream, read_references, read_text
from docnmt_fairseq.files import read_json, sha256, write_bytes, write_json
from docnmt_fairseq.recipes import translating
from docnmt_fairseq.recipes.dataset import NO_CONTEXT, SHUFFLED, TEST, DatasetConfig, ExtraMetrics
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.processes import Machine
from docnmt_fairseq.recipes.splits import further_references
from docnmt_fairseq.recipes.training import BEST, RECORD
from docnmt_fairseq.translate.view import DOCUMENT_TASK, DocumentView

# Scores of one model and seed: bleu_tokens, bleu, chrf, perhaps hter, sentences, signatures; "metrics": score (None if
# a smoke run has nothing to score) and signature of each extra metric; "significance", "contexts", "cxmi" if computed.
Scores = Dict[str, Any]

logger = logging.getLogger(__name__)


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

    def scores(self, dataset: DatasetConfig, significance: bool = False, probes: bool = False) -> Scores:
        """Returns the scores of a model on a test set.

        Args:
            dataset: configuration.
            significance: include the significance test, if there is one.
            probes: include probes, as far as they exist: ``contexts``, scores by context; ``cxmi``, nats per sentence
                by context; ``cxmi_sentences``, sample size.
        """
        scores: Scores = read_json(self.named("scores.json"))
        if significance and (test := read_json(self.named("significance.json"))):
            scores["significance"] = test
        if probes:
            wanted = dataset.probes
            of_context = {name: read_json(replace(self, context=name).named("scores.json")) for name in wanted.contexts}
            scores["contexts"] = {name: found for name, found in of_context.items() if found}
            if wanted.cxmi_sentences is not None and (measured := read_json(self.named("cxmi.json"))):
                scores["cxmi"] = {probe: figures["cxmi"] for probe, figures in measured["probes"].items()}
                scores["cxmi_sentences"] = measured["about"]["sentences"]
        return scores


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
        for test_set in dataset.test_sets if dataset.scores.metrics else ():
            make_metrics(dataset.scores, test_set, self.references(test_set), self.paths, smoke)

    def references(self, test_set: str) -> References:
        """Returns the prepared test set."""
        source, target = self._texts(test_set)
        return read_references([target, *further_references(self.dataset, self.data, test_set)], source)

    def translate(self, folder: Path, chosen: Model, tokens: int) -> None:
        """Translates and scores the test sets: ``generate.log``, ``test.txt``, ``scores.json``.

        Args:
            folder: folder of the model.
            chosen: trained model.
            tokens: tokens per batch.
        """
        joins, view = None if self.options["edits_of"] else self.target.joiner, self._view(chosen)
        for test_set, split in self.dataset.test_sets.items():
            files = ResultFiles(folder, test_set)
            inputs = {**self._model_inputs(folder, view), "text": self._text_hashes(test_set)}
            log, bins = files.named("generate.log"), self.data / "data-bin"
            action = partial(translating.generate, bins, split, folder, log, chosen, tokens, joins, self.machine, view)
            self.steps.run(files.step("translate"), inputs, [log], action)

            def scores(files: ResultFiles = files, split: str = split, log: Path = log) -> Scores:
                translation = read_translation(self.data, split, log)
                write_bytes(files.text, "".join(f"{line}\n" for line in translation.text).encode())
                further = further_references(self.dataset, self.data, files.test_set)
                return translation_scores(
                    translation,
                    post_editing=self.dataset.post_edits_of is not None,
                    further_tokens=reference_tokens(self.data, further),
                    further_text=[list(read_lines(path)) for path in further],
                )

            self._score(files, {"log": sha256(log)}, [files.text], scores)

    def _score(
        self, files: ResultFiles, inputs: Dict[str, Any], outputs: List[Path], scores: Callable[[], Scores]
    ) -> None:
        """Writes the scores of a translation, with extra metrics."""
        extra, output = self.dataset.scores, files.named("scores.json")
        inputs = {**inputs, "test_set": self._text_hashes(files.test_set)}
        if extra.metrics:
            hashes = {file: sha256(path) for file, path in self.paths.items()}
            inputs.update(metrics=[extra.metrics, extra.options], files=hashes)

        def score() -> None:
            found = scores()
            if extra.metrics:
                references = self.references(files.test_set)
                metrics = make_metrics(extra, files.test_set, references, self.paths, self.smoke)
                translation = read_text(files.text, references, "score")
                found["metrics"] = metric_scores(metrics, translation, self.paths)
            write_json(output, found, indent=1)

        self.steps.run(files.step("score"), inputs, [*outputs, output], score)

    def compare(self, folder: Path, baseline: Path) -> None:
        """Tests the difference in BLEU from a translated baseline: ``significance.json``; needs several documents."""
        for test_set in self.dataset.test_sets:
            references, files = self.references(test_set), ResultFiles(folder, test_set)
            if references.documents < 2:
                continue
            texts, output = [ResultFiles(baseline, test_set).text, files.text], files.named("significance.json")

            def compare(references: References = references, texts: List[Path] = texts, output: Path = output) -> None:
                before, after = (read_text(text, references, "score") for text in texts)
                outcome = bleu_significance(references, before, after, self.target.tokenizer)
                write_json(output, {"baseline": baseline.name, **outcome}, indent=1)

            inputs = {"texts": [sha256(text) for text in texts], "reference": [sha256(one) for one in references.files]}
            self.steps.run(files.step("significance"), inputs, [output], compare)

    def probe(self, folder: Path, chosen: Model, tokens: int) -> None:
        """Tests whether a model uses its context: ``test.shuffled.txt``, ``scores.shuffled.json``, …, ``cxmi.json``.

        Shuffled context comes from other documents, so that it needs several.
        """
        usual, wanted, best, cpu = self._view(chosen), self.dataset.probes, folder / BEST, self.machine.cpu
        for test_set in self.dataset.test_sets:
            references, (source, reference) = self.references(test_set), self._texts(test_set)
            several = references.documents > 1
            for context in wanted.contexts:
                if context == SHUFFLED and not several:
                    continue
                files, view = ResultFiles(folder, test_set, context), DocumentView() if context == NO_CONTEXT else usual
                inputs = {**self._model_inputs(folder, view), "text": sha256(source)}
                action = partial(
                    translating.translate_with_context, self.data, source, best, files.text, context, tokens, cpu, view
                )
                self.steps.run(files.step("translate"), inputs, [files.text], action)
                scores = partial(self._text_scores, files.text, references.files)
                self._score(files, {"text": sha256(files.text)}, [], scores)
            if several and wanted.cxmi_sentences is not None:
                files, sentences = ResultFiles(folder, test_set), wanted.cxmi_sentences
                output, hashes = files.named("cxmi.json"), [sha256(text) for text in (source, reference)]
                inputs = {**self._model_inputs(folder, usual), "texts": hashes, "sentences": sentences}
                action = partial(
                    translating.measure_cxmi, self.data, source, reference, best, output, sentences, cpu, usual
                )
                self.steps.run(files.step("cxmi"), inputs, [output], action)

    def _text_scores(self, text: Path, references: Sequence[Path]) -> Scores:
        translation, *of_references = (list(read_lines(path)) for path in (text, *references))
        return text_scores(translation, of_references, self.target.tokenizer)

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
        changed = chosen.task == DOCUMENT_TASK and chosen.sees_context
        return DocumentView(**self.dataset.view) if changed else DocumentView()  # type: ignore[arg-type]


# --- Scores ---


def translation_scores(
    translation: Translation,
    post_editing: bool,
    further_tokens: Sequence[List[str]] = (),
    further_text: Sequence[List[str]] = (),
) -> Scores:
    """Returns the scores that every recipe has.

    Args:
        translation: translation and reference.
        post_editing: the reference is a post-edit; adds HTER.
        further_tokens, further_text: further references.
    """
    tokens = tokenized_bleu(translation.tokens, translation.reference_tokens, *further_tokens)
    scores: Scores = {
        **text_scores(translation.text, [translation.reference_text, *further_text], translation.tokenizer),
        "bleu_tokens": tokens.score,
        "bleu_tokens_signature": tokens.signature,
    }
    if post_editing:
        edits = human_targeted_error_rate(translation.tokens, translation.reference_tokens)
        scores.update(hter=edits.score, hter_signature=edits.signature)
    return scores


def unedited_scores(data: Path, split: str, side: str) -> Scores:
    """Returns the scores of the unedited machine translation, a side of a prepared test set."""
    return translation_scores(read_text_as_translation(data, split, side), post_editing=True)


def reference_tokens(data: Path, references: Sequence[Path]) -> List[List[str]]:
    """Returns the lines of further references of prepared data, tokenised and truecased as in the training."""
    pipeline = SidePipeline.from_options(manifest_options(data, "data"), 1)
    encode = pipeline.encoder(data / "models", stages=(TOKENIZED, TRUECASED))
    return [map_sentences(list(read_lines(path)), encode) for path in references]


def text_scores(text: Sequence[str], references: Sequence[Sequence[str]], tokenizer: str) -> Scores:
    """Returns BLEU and chrF of lines of plain text; ``tokenizer`` is that of ``docnmt prepare``."""
    return corpus_scores(text, *references, tokenizer=_bleu_tokenizer(tokenizer))


def _bleu_tokenizer(tokenizer: str) -> Optional[str]:
    """Tokenizer of sacrebleu's BLEU for a tokenizer of ``docnmt prepare``; None: sacrebleu's default."""
    return "zh" if tokenizer == "jieba" else None


def make_metrics(
    extra: ExtraMetrics, test_set: str, references: References, paths: Mapping[str, Path], smoke: bool
) -> Dict[str, Optional[Metric]]:
    """Returns the extra metrics of a test set by name.

    Args:
        extra: metrics and their options.
        test_set: its name.
        references: its references and source.
        paths: paths of the files that metrics read, by name.
        smoke: metrics with nothing to score in so few documents are None, with a warning.
    """
    metrics: Dict[str, Optional[Metric]] = {}
    for name in extra.metrics:
        try:
            metrics[name] = METRICS[name](references, extra.options_of(name, test_set, paths))
        except InputError as error:
            if not smoke:
                raise
            logger.warning(f"scores: {name} of {test_set}: skipped in this smoke run: {error}")
            metrics[name] = None
    return metrics


def metric_scores(metrics: Mapping[str, Optional[Metric]], translation: Stream, paths: Mapping[str, Path]) -> Scores:
    """Returns score, signature and perhaps scores by category of each metric.

    Args:
        metrics: metrics by name.
        translation: translation of their test set.
        paths: paths of the files that metrics read; signatures contain the names instead.
    """
    scores: Scores = {}
    for name, metric in metrics.items():
        if metric is None:
            scores[name] = {"score": None, "signature": None}
            continue
        signature = metric.signature()
        for file, path in paths.items():
            signature = signature.replace(str(path), file)
        sums = column_sums(metric.statistics(translation))
        scores[name] = {"score": metric.score(sums), "signature": signature}
        if metric.parts:
            scores[name]["parts"] = metric.part_scores(sums)
    return scores


def bleu_significance(references: References, baseline: Stream, translation: Stream, tokenizer: str) -> Scores:
    """Compares BLEU with a baseline by paired bootstrap over whole documents: difference, interval, p-value."""
    metric, test = Bleu(references, BleuOptions(tokenize=_bleu_tokenizer(tokenizer))), TESTS["documents"]()
    statistics = {"baseline": metric.statistics(baseline), "model": metric.statistics(translation)}
    comparison = test.compare(metric, statistics, test.samples, SEED)
    outcome = comparison.outcomes["model"]
    return {
        "difference": outcome.difference,
        "difference_interval": outcome.difference_interval,
        "p_value": outcome.p_value,
        "documents": references.documents,
        "samples": comparison.samples,
        "signature": comparison.signature,
    }
