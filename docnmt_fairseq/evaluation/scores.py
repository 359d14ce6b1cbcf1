"""The scores of one delimited text beside its reference, with the signatures that make them reproducible.

Each function takes lines with the marks of documents and paragraphs, equally many of both; what stands at a mark is
not scored. It raises :class:`InputError` for unequal numbers of lines, or no sentence to score.
"""

from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional, Sequence

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import sentence_ids
from docnmt_fairseq.evaluation.metrics import Metric, MetricOptions
from docnmt_fairseq.evaluation.metrics.bleu import Bleu, BleuOptions
from docnmt_fairseq.evaluation.metrics.chrf import Chrf, ChrfOptions
from docnmt_fairseq.evaluation.metrics.hter import Hter
from docnmt_fairseq.evaluation.significance.signs import sign_p_value
from docnmt_fairseq.evaluation.texts import References


@dataclass(frozen=True)
class Scores:
    """Corpus-level scores from 0 to 100, the number of sentences they are over, and sacrebleu's signatures."""

    bleu: float
    chrf: float
    sentences: int
    bleu_signature: str
    chrf_signature: str

    def to_json(self) -> Dict[str, Any]:
        """The fields as a plain dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class TokenizedBleu:
    """The score from 0 to 100, the number of sentences it is over, and sacrebleu's signature."""

    bleu: float
    sentences: int
    signature: str


@dataclass(frozen=True)
class EditRate:
    """Edits in percent of the reference's tokens, and sacrebleu's signature."""

    hter: float
    signature: str


def corpus_scores(hypotheses: Sequence[str], reference: Sequence[str], tokenizer: Optional[str] = None) -> Scores:
    """BLEU and chrF of plain text.

    Args:
        hypotheses: lines of the translation.
        reference: lines of the reference.
        tokenizer: of sacrebleu's BLEU; None for its own choice, which does not suit languages without spaces.
    """
    text = _Sentences(hypotheses, reference)
    bleu, chrf = Bleu(text.reference, BleuOptions(tokenize=tokenizer)), Chrf(text.reference, ChrfOptions())
    return Scores(text.score(bleu), text.score(chrf), text.reference.sentences, bleu.signature(), chrf.signature())


def tokenized_bleu(hypotheses: Sequence[str], reference: Sequence[str]) -> TokenizedBleu:
    """BLEU over tokens as they stand, which is what multi-bleu.perl computes; published figures often are that.

    Nothing is tokenised, smoothed or lower-cased: comparable only over the same tokenisation of the same reference.

    Args:
        hypotheses: lines of tokens with spaces between.
        reference: the same of the reference.
    """
    text = _Sentences(hypotheses, reference)
    metric = Bleu(text.reference, BleuOptions(tokenize="none", smooth="none"))
    return TokenizedBleu(text.score(metric), text.reference.sentences, metric.signature())


def tokenized_sign_test(hypotheses: Sequence[str], baseline: Sequence[str], reference: Sequence[str]) -> float:
    """The p-value of the sign test of Collins et al. (2005) by BLEU over tokens.

    Args:
        hypotheses, baseline: lines of tokens of two translations.
        reference: the same of the reference.
    """
    text, other = _Sentences(hypotheses, reference), _Sentences(baseline, reference)
    metric = Bleu(text.reference, BleuOptions(tokenize="none", smooth="none"))
    one, two = (np.array(rows) for rows in metric.statistics([other.translation, text.translation]))
    return sign_p_value(metric, one, two)


def human_targeted_error_rate(hypotheses: Sequence[str], reference: Sequence[str]) -> EditRate:
    """HTER over tokens as they stand, with case, as WMT's tasks of automatic post-editing score it.

    Args:
        hypotheses: lines of tokens with spaces between.
        reference: the same of the post-edit of the machine translation.
    """
    text = _Sentences(hypotheses, reference)
    metric = Hter(text.reference, MetricOptions())
    return EditRate(text.score(metric), metric.signature())


class _Sentences:
    """The sentences of two delimited texts: a test set without files, and its translation."""

    def __init__(self, hypotheses: Sequence[str], reference: Sequence[str]):
        if len(hypotheses) != len(reference):
            raise InputError(f"{len(hypotheses)} lines translated, but the reference has {len(reference)}")
        ids = sentence_ids(reference)
        if not ids:
            raise InputError("the reference holds marks only: nothing to score")
        self.reference = References((), [[[reference[i] for i in ids]]], None, [[i + 1 for i in ids]])
        self.translation = [[hypotheses[i] for i in ids]]

    def score(self, metric: Metric) -> float:
        """The score of all sentences."""
        return metric.corpus_score(metric.statistics([self.translation])[0])
