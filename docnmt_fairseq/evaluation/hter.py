"""HTER over tokens as they stand, with case, as WMT's tasks of automatic post-editing score it (Snover et al. 2006)."""

from dataclasses import dataclass
from typing import Sequence

from docnmt_fairseq.evaluation.metrics import make_metric
from docnmt_fairseq.evaluation.scores import scored_sentences


@dataclass(frozen=True)
class Hter:
    """Edits in percent of the reference's tokens, and sacrebleu's signature."""

    hter: float
    signature: str


def human_targeted_error_rate(hypotheses: Sequence[str], reference: Sequence[str]) -> Hter:
    """Returns the translation edit rate against the post-edit of the machine translation.

    Args:
        hypotheses: one line for each line of ``reference``; what stands at a mark is not scored.
        reference: the tokenised lines of the delimited post-edit, marks included.

    Raises:
        InputError: unequal numbers of lines, or no sentence to score.
    """
    metric = make_metric("hter")
    score = metric.corpus_score(*scored_sentences(hypotheses, reference)).score
    return Hter(score, str(metric.get_signature()))
