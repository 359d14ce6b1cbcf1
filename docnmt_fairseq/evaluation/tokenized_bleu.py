"""BLEU over tokens as they stand, which is what multi-bleu.perl computes; published figures often are that."""

from dataclasses import dataclass
from typing import Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.generate_log import sentence_ids


@dataclass(frozen=True)
class TokenizedBleu:
    """The score from 0 to 100, the number of sentences it is over, and sacrebleu's signature."""

    bleu: float
    sentences: int
    signature: str


def tokenized_bleu(hypotheses: Sequence[str], reference: Sequence[str]) -> TokenizedBleu:
    """Returns corpus BLEU of tokens with spaces between: nothing is tokenised, smoothed or lower-cased.

    Comparable only with scores over the same tokenisation of the same reference.

    Args:
        hypotheses: one line for each line of ``reference``; what stands at a mark is not scored.
        reference: the tokenised lines of the delimited reference, marks included.

    Raises:
        InputError: unequal numbers of lines, or no sentence to score.
    """
    from sacrebleu.metrics import BLEU

    if len(hypotheses) != len(reference):
        raise InputError(f"{len(hypotheses)} lines translated, but the reference has {len(reference)}")
    ids = sentence_ids(reference)
    if not ids:
        raise InputError("the reference holds marks only: nothing to score")
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    score = metric.corpus_score([hypotheses[i] for i in ids], [[reference[i] for i in ids]]).score
    return TokenizedBleu(score, len(ids), str(metric.get_signature()))
