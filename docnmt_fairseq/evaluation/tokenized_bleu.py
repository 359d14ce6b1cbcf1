"""BLEU over tokens as they stand, which is what multi-bleu.perl computes; published figures often are that."""

from dataclasses import dataclass
from typing import Sequence

from docnmt_fairseq.evaluation.metrics import MetricOptions, make_metric
from docnmt_fairseq.evaluation.scores import scored_sentences


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
    translated, references = scored_sentences(hypotheses, reference)
    metric = make_metric("bleu", MetricOptions(tokenize="none", smooth="none"))
    score = metric.corpus_score(translated, references).score
    return TokenizedBleu(score, len(translated), str(metric.get_signature()))
