"""Scores of one delimited text against its references.

All functions take lines of delimited text with boundaries on the same lines, ignore the boundaries, and raise
:class:`InputError` for different numbers of lines.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics import METRICS, Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import BleuOptions, ChrfOptions
from docnmt_fairseq.evaluation.significance import sign_p_value
from docnmt_fairseq.evaluation.texts import References

TOKENISED = BleuOptions(tokenize="none", smooth="none")  # equal to multi-bleu.perl


@dataclass(frozen=True)
class TextScore:
    """Score by one metric, the number of sentences, and sacreBLEU's signature."""

    score: float
    sentences: int
    signature: str


def corpus_scores(
    hypotheses: Sequence[str], *references: Sequence[str], tokenizer: Optional[str] = None
) -> Dict[str, Any]:
    """BLEU and chrF of plain text, the number of sentences, and sacreBLEU's signatures.

    Args:
        hypotheses: lines of the translation.
        references: lines of each reference.
        tokenizer: sacreBLEU's tokeniser for BLEU; the default does not suit languages without spaces.
    """
    bleu = _score("bleu", BleuOptions(tokenize=tokenizer), hypotheses, references)
    chrf = _score("chrf", ChrfOptions(), hypotheses, references)
    return {
        "bleu": bleu.score,
        "chrf": chrf.score,
        "sentences": bleu.sentences,
        "bleu_signature": bleu.signature,
        "chrf_signature": chrf.signature,
    }


def tokenized_bleu(hypotheses: Sequence[str], *references: Sequence[str]) -> TextScore:
    """BLEU of tokenised text as by multi-bleu.perl, comparable for the same tokenisation of the references only."""
    return _score("bleu", TOKENISED, hypotheses, references)


def tokenized_sign_test(hypotheses: Sequence[str], baseline: Sequence[str], *references: Sequence[str]) -> float:
    """P-value of the sign test of Collins et al. (2005) with BLEU of tokenised text."""
    metric = _metric("bleu", TOKENISED, references)
    rows = (np.array(_statistics(metric, text, references)) for text in (baseline, hypotheses))
    return sign_p_value(metric, *rows)


def human_targeted_error_rate(hypotheses: Sequence[str], reference: Sequence[str]) -> TextScore:
    """HTER of tokenised text with case, as in WMT's automatic post-editing tasks; the reference is a post-edit."""
    return _score("hter", MetricOptions(), hypotheses, [reference])


def _score(
    name: str, options: MetricOptions, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> TextScore:
    metric = _metric(name, options, references)
    score = metric.corpus_score(_statistics(metric, hypotheses, references))
    return TextScore(score, metric.test_set.sentences, metric.signature())


def _metric(name: str, options: MetricOptions, references: Sequence[Sequence[str]]) -> Metric:
    lines = [number for number, line in enumerate(references[0], start=1) if not is_boundary(line)]
    streams = [[[reference[number - 1] for number in lines]] for reference in references]
    return METRICS[name](References((), streams, None, [lines]), options)


def _statistics(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> List[List[float]]:
    if len(hypotheses) != len(references[0]):
        raise InputError(f"{len(hypotheses)} translated lines, but {len(references[0])} lines in the reference")
    return metric.statistics([[hypotheses[number - 1] for number in metric.test_set.lines[0]]])
