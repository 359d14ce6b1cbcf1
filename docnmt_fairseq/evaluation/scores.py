"""Scores of one delimited text against its reference.

All functions take lines of delimited text with boundaries on the same lines, ignore the boundaries, and raise
:class:`InputError` for different numbers of lines or no sentences.
"""

from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional, Sequence

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import sentence_ids
from docnmt_fairseq.evaluation.metrics import Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import Bleu, BleuOptions, Chrf, ChrfOptions, Hter
from docnmt_fairseq.evaluation.significance import sign_p_value
from docnmt_fairseq.evaluation.texts import References

TOKENISED = BleuOptions(tokenize="none", smooth="none")  # equal to multi-bleu.perl


@dataclass(frozen=True)
class Scores:
    """BLEU and chrF from 0 to 100, the number of sentences, and sacreBLEU's signatures."""

    bleu: float
    chrf: float
    sentences: int
    bleu_signature: str
    chrf_signature: str

    def to_json(self) -> Dict[str, Any]:
        """The fields as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class TextScore:
    """Score by one metric, the number of sentences, and sacreBLEU's signature."""

    score: float
    sentences: int
    signature: str


def corpus_scores(hypotheses: Sequence[str], reference: Sequence[str], tokenizer: Optional[str] = None) -> Scores:
    """BLEU and chrF of plain text.

    Args:
        hypotheses: lines of the translation.
        reference: lines of the reference.
        tokenizer: sacreBLEU's tokeniser for BLEU; the default does not suit languages without spaces.
    """
    pair = _TextPair(hypotheses, reference)
    bleu = pair.score(Bleu(pair.reference, BleuOptions(tokenize=tokenizer)))
    chrf = pair.score(Chrf(pair.reference, ChrfOptions()))
    return Scores(bleu.score, chrf.score, bleu.sentences, bleu.signature, chrf.signature)


def tokenized_bleu(hypotheses: Sequence[str], reference: Sequence[str]) -> TextScore:
    """BLEU of tokenised text as by multi-bleu.perl, comparable for the same tokenisation of the reference only."""
    pair = _TextPair(hypotheses, reference)
    return pair.score(Bleu(pair.reference, TOKENISED))


def tokenized_sign_test(hypotheses: Sequence[str], baseline: Sequence[str], reference: Sequence[str]) -> float:
    """P-value of the sign test of Collins et al. (2005) with BLEU of tokenised text."""
    pair, other = _TextPair(hypotheses, reference), _TextPair(baseline, reference)
    metric = Bleu(pair.reference, TOKENISED)
    one, two = (np.array(rows) for rows in metric.statistics([other.translation, pair.translation]))
    return sign_p_value(metric, one, two)


def human_targeted_error_rate(hypotheses: Sequence[str], reference: Sequence[str]) -> TextScore:
    """HTER of tokenised text with case, as in WMT's automatic post-editing tasks; the reference is a post-edit."""
    pair = _TextPair(hypotheses, reference)
    return pair.score(Hter(pair.reference, MetricOptions()))


class _TextPair:
    """Sentences of a reference and of its translation."""

    def __init__(self, hypotheses: Sequence[str], reference: Sequence[str]):
        if len(hypotheses) != len(reference):
            raise InputError(f"{len(hypotheses)} translated lines, but {len(reference)} lines in the reference")
        ids = sentence_ids(reference)
        if not ids:
            raise InputError("no sentences in the reference")
        self.reference = References((), [[[reference[i] for i in ids]]], None, [[i + 1 for i in ids]])
        self.translation = [[hypotheses[i] for i in ids]]

    def score(self, metric: Metric) -> TextScore:
        score = metric.corpus_score(metric.statistics([self.translation])[0])
        return TextScore(score, self.reference.sentences, metric.signature())
