"""Scores of a translated test set."""

import logging
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.base import Metric
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import Bleu, BleuOptions
from docnmt_fairseq.evaluation.postprocess import Translation, read_text_as_translation
from docnmt_fairseq.evaluation.scores import corpus_scores, human_targeted_error_rate, tokenized_bleu
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import References, Stream
from docnmt_fairseq.recipes.dataset import ExtraMetrics

# Scores of one model and seed: bleu_tokens, bleu, chrf, perhaps hter, sentences, signatures; "metrics": score (None if
# a smoke run has nothing to score) and signature of each extra metric; "significance", "contexts", "cxmi" if computed.
Scores = Dict[str, Any]

logger = logging.getLogger(__name__)


def translation_scores(translation: Translation, post_editing: bool) -> Scores:
    """Returns the scores that every recipe has.

    Args:
        translation: translation and reference.
        post_editing: the reference is a post-edit; adds HTER.
    """
    tokens = tokenized_bleu(translation.tokens, translation.reference_tokens)
    scores: Scores = {
        **text_scores(translation.text, translation.reference_text, translation.tokenizer),
        "bleu_tokens": tokens.score,
        "bleu_tokens_signature": tokens.signature,
    }
    if post_editing:
        edits = human_targeted_error_rate(translation.tokens, translation.reference_tokens)
        scores.update(hter=edits.score, hter_signature=edits.signature)
    return scores


def text_scores(text: Sequence[str], reference: Sequence[str], tokenizer: str) -> Scores:
    """Returns BLEU and chrF of plain text.

    Args:
        text: lines of the translation.
        reference: lines of the reference.
        tokenizer: tokenizer of ``docnmt prepare``.
    """
    return corpus_scores(text, reference, _bleu_tokenizer(tokenizer))


def _bleu_tokenizer(tokenizer: str) -> Optional[str]:
    """Returns the tokenizer of sacrebleu's BLEU for a tokenizer of ``docnmt prepare``; None: sacrebleu's default."""
    return "zh" if tokenizer == "jieba" else None


def unedited_scores(data: Path, split: str, side: str) -> Scores:
    """Returns the scores of the unedited machine translation in automatic post-editing.

    Args:
        data: output of ``docnmt prepare``.
        split: "test", "test1", ….
        side: side with the machine translation.
    """
    return translation_scores(read_text_as_translation(data, split, side), post_editing=True)


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

    Raises:
        InputError: missing or invalid input of a metric.
    """
    metrics: Dict[str, Optional[Metric]] = {}
    for name in extra.metrics:
        try:
            metrics[name] = METRICS[name](references, extra.options_of(name, test_set, paths))
        except InputError as error:
            if not smoke:
                raise InputError(f"scores: {name} of {test_set}: {error}") from error
            logger.warning(f"scores: {name} of {test_set}: skipped in this smoke run: {error}")
            metrics[name] = None
    return metrics


def metric_scores(metrics: Mapping[str, Optional[Metric]], translation: Stream, paths: Mapping[str, Path]) -> Scores:
    """Returns score and signature of each metric.

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
        scores[name] = {"score": metric.corpus_score(metric.statistics(translation)), "signature": signature}
    return scores


def bleu_significance(references: References, baseline: Stream, translation: Stream, tokenizer: str) -> Scores:
    """Compares BLEU with a baseline by paired bootstrap over whole documents: difference, interval, p-value.

    Args:
        references: references of the test set.
        baseline: translation of the baseline.
        translation: translation to compare.
        tokenizer: tokenizer of ``docnmt prepare``.
    """
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
