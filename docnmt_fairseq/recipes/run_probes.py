"""Asks trained models whether what they gain comes from context: false context, no context, and CXMI."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.steps import sha256
from docnmt_fairseq.corpus.text_codec import tokenizers_of
from docnmt_fairseq.recipes.context_use import measure_cxmi, translate
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.recipes.probes import NONE, SHUFFLED, Probes
from docnmt_fairseq.recipes.result_files import ResultFiles, read_json, write_json
from docnmt_fairseq.recipes.results import Results, seen
from docnmt_fairseq.recipes.scoring import Scores, text_scores
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.translate.view import DocumentView


class Probing:
    """What the recipe asks, and where the answers go: into the models' folders, beside their results.

    Args:
        results: of the models.
        cpu: without a GPU.
    """

    def __init__(self, results: Results, cpu: bool):
        self.results, self.probes, self.cpu = results, results.dataset.probes, cpu

    def probe(self, folder: Path, chosen: Model, tokens: int) -> None:
        """Asks a model: ``test.shuffled.txt``, ``scores.shuffled.json``, …, ``cxmi.json``.

        Of a test set of one document there is no false context: it comes from others.

        Args:
            folder: of the model, trained.
            chosen: what it is.
            tokens: of a batch of translation.

        Raises:
            InputError: it failed.
        """
        view = self.results.view_of(chosen)
        for test_set in self.results.dataset.test_sets:
            several = self.results.references(test_set).documents > 1
            for context in self.probes.contexts:
                if several or context != SHUFFLED:
                    of_context = DocumentView() if context == NONE else view
                    self._translate(ResultFiles(folder, test_set, context), tokens, of_context)
            if several and self.probes.cxmi_sentences is not None:
                self._measure(ResultFiles(folder, test_set), self.probes.cxmi_sentences, view)

    def _translate(self, files: ResultFiles, tokens: int, view: DocumentView) -> None:
        results, scores = self.results, files.named("scores.json")
        source, reference = results.text_of(files.test_set)
        inputs = {"model": read_json(files.folder / "training.json"), "text": sha256(source), **seen(view)}
        action = partial(
            translate, results.data, source, files.folder / BEST, files.text, files.context, tokens, self.cpu, view
        )
        results.steps.run(files.step("translate"), inputs, [files.text], action)

        def score() -> None:
            text, wanted = (list(read_lines(path)) for path in (files.text, reference))
            plain = text_scores(text, wanted, tokenizers_of(results.options)[1])
            write_json(scores, {**plain, **results.further_scores(files)})

        inputs = {"text": sha256(files.text), "test_set": results.digests(files.test_set), **results.further_inputs()}
        results.steps.run(files.step("score"), inputs, [scores], score)

    def _measure(self, files: ResultFiles, sentences: int, view: DocumentView) -> None:
        results, written = self.results, files.named("cxmi.json")
        texts = results.text_of(files.test_set)
        inputs = {
            "model": read_json(files.folder / "training.json"),
            "texts": [sha256(text) for text in texts],
            "sentences": sentences,
            **seen(view),
        }
        action = partial(measure_cxmi, results.data, *texts, files.folder / BEST, written, sentences, self.cpu, view)
        results.steps.run(files.step("cxmi"), inputs, [written], action)


def read_probes(files: ResultFiles, probes: Probes) -> Scores:
    """What was found out about a model on a test set, as far as it could be.

    Args:
        files: of both.
        probes: what was asked.

    Returns:
        ``contexts``: scores by context; ``cxmi``: nats a sentence by context; ``cxmi_sentences``: over how many.
    """
    scores = {one: replace(files, context=one).named("scores.json") for one in probes.contexts}
    found: Scores = {"contexts": {context: read_json(path) for context, path in scores.items() if path.exists()}}
    report = files.named("cxmi.json")
    if probes.cxmi_sentences is not None and report.exists():
        measured = read_json(report)
        found["cxmi"] = {probe: figures["cxmi"] for probe, figures in measured["probes"].items()}
        found["cxmi_sentences"] = measured["about"]["sentences"]
    return found
