"""The scores of a translated test set, as a recipe keeps and tabulates them."""

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
from docnmt_fairseq.recipes.metrics import FurtherMetrics

# Of one model and seed: bleu_tokens, bleu, chrf, perhaps hter, sentences, signatures; "metrics": score (None where a
# smoke run has nothing to score) and signature of each further one; "significance", "contexts", "cxmi" where they were
# asked for.
Scores = Dict[str, Any]

logger = logging.getLogger(__name__)


def scores_of(found: Translation, post_editing: bool) -> Scores:
    """The scores of a translation that every recipe has.

    Args:
        found: beside its reference.
        post_editing: the reference is a post-edit, so that there is HTER, too.
    """
    plain = text_scores(found.text, found.reference_text, found.tokenizer)
    tokens = tokenized_bleu(found.tokens, found.reference_tokens)
    scores: Scores = {**plain, "bleu_tokens": tokens.bleu, "bleu_tokens_signature": tokens.signature}
    if post_editing:
        edits = human_targeted_error_rate(found.tokens, found.reference_tokens)
        scores.update(hter=edits.hter, hter_signature=edits.signature)
    return scores


def text_scores(text: Sequence[str], reference: Sequence[str], tokenizer: str) -> Scores:
    """BLEU and chrF of plain text.

    Args:
        text: lines of a translation.
        reference: lines of the reference.
        tokenizer: with which text was prepared.
    """
    return corpus_scores(text, reference, bleu_tokenizer(tokenizer)).to_json()


def bleu_tokenizer(tokenizer: str) -> Optional[str]:
    """What sacrebleu's BLEU splits text with that was prepared with a tokenizer; None for its own choice."""
    return "zh" if tokenizer == "jieba" else None


def scores_of_unchanged(data: Path, split: str, side: str) -> Scores:
    """The scores of a machine translation that nobody edits.

    Args:
        data: what ``docnmt prepare`` wrote.
        split: "test", "test1", ...
        side: that holds the translation.
    """
    return scores_of(read_text_as_translation(data, split, side), post_editing=True)


def metrics_of(
    further: FurtherMetrics, test_set: str, references: References, paths: Mapping[str, Path], smoke: bool
) -> Dict[str, Optional[Metric]]:
    """The further metrics of a test set by name.

    Args:
        further: which, and what they are told.
        test_set: its name.
        references: of it, with their source.
        paths: where the files that metrics read are, by name.
        smoke: a metric that has nothing to score in so few documents is None, with a warning.

    Raises:
        InputError: what a metric needs is missing or wrong.
    """
    found: Dict[str, Optional[Metric]] = {}
    for name in further.metrics:
        try:
            found[name] = METRICS[name](references, further.told(name, test_set, paths))
        except InputError as error:
            if not smoke:
                raise InputError(f"scores: {name} of {test_set}: {error}") from error
            logger.warning(f"scores: {name} of {test_set}: left out of this smoke run: {error}")
            found[name] = None
    return found


def metric_scores(metrics: Mapping[str, Optional[Metric]], translation: Stream, paths: Mapping[str, Path]) -> Scores:
    """Score and signature of each metric.

    Args:
        metrics: by name.
        translation: of their test set.
        paths: where the files that metrics read are, by name; signatures have the names.
    """
    scores: Scores = {}
    for name, metric in metrics.items():
        if metric is None:
            scores[name] = {"score": None, "signature": None}
            continue
        signature = metric.signature()
        for file, path in paths.items():
            signature = signature.replace(str(path), file)
        scores[name] = {"score": metric.corpus_score(metric.statistics([translation])[0]), "signature": signature}
    return scores


def compared(references: References, baseline: Stream, translation: Stream, tokenizer: str) -> Scores:
    """BLEU beside a baseline's by the paired bootstrap over whole documents: difference, interval, p-value.

    Args:
        references: of the test set.
        baseline: the baseline's translation.
        translation: to compare.
        tokenizer: with which text was prepared.
    """
    metric, test = Bleu(references, BleuOptions(tokenize=bleu_tokenizer(tokenizer))), TESTS["documents"]()
    statistics = dict(zip(("baseline", "model"), metric.statistics([baseline, translation])))
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
