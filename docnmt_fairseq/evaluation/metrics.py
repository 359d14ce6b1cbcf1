"""sacrebleu's metrics by name, and what they are over: sentences, or true documents joined to one segment each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, List, Optional, Sequence

from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric, Signature

METRICS = ("bleu", "chrf", "chrf++", "ter", "hter")
LEVELS = ("sentence", "document")
SMOOTHING = ("exp", "none", "floor", "add-k")

Stream = List[List[str]]  # the sentences of each document


@dataclass(frozen=True)
class MetricOptions:
    """What the metrics are told beside the text.

    Attributes:
        tokenize: tokeniser of BLEU by sacrebleu's name; None for its own choice, "none" for tokens as they stand.
        smooth: of BLEU, one of ``SMOOTHING``.
        lowercase: BLEU and chrF without case (TER is without case anyway, HTER never).
    """

    tokenize: Optional[str] = None
    smooth: str = "exp"
    lowercase: bool = False


def make_metric(
    name: str, options: MetricOptions = MetricOptions(), references: Optional[Sequence[Sequence[str]]] = None
) -> "Metric":
    """Returns one of ``METRICS``.

    "hter" is TER as shared tasks of post-editing take it, with case and over tokens as they stand; it is human-targeted
    (Snover et al. 2006) if the reference is a post-edit of the machine translation.

    Args:
        name: of the metric.
        options: where they concern it.
        references: the segments of each reference, which it then remembers; None to give them with each text.

    Raises:
        InputError: sacrebleu has no such tokeniser, or lacks what it needs.
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    if name in ("ter", "hter"):
        return TER(case_sensitive=name == "hter", references=references)
    if name != "bleu":
        return CHRF(word_order=2 if name == "chrf++" else 0, lowercase=options.lowercase, references=references)
    if options.tokenize is not None and options.tokenize not in BLEU.TOKENIZERS:
        raise InputError(f"--tokenize {options.tokenize}: no such tokeniser; there are {', '.join(BLEU.TOKENIZERS)}")
    try:
        return BLEU(
            lowercase=options.lowercase,
            force=options.tokenize == "none",  # no warning that the text seems to be tokenised
            tokenize=options.tokenize,
            smooth_method=options.smooth,
            references=references,
        )
    except (ImportError, RuntimeError, OSError) as error:
        raise InputError(f"--tokenize {options.tokenize}: {error}".replace("\n", " ")) from error


def segments(stream: Stream, level: str) -> List[str]:
    """Returns what a metric takes as one segment each: sentences, or documents with spaces between their sentences."""
    if level == "document":
        return [" ".join(filter(None, sentences)) for sentences in stream]
    return [sentence for sentences in stream for sentence in sentences]


def signature_of(signature: "Signature", level: str) -> str:
    """Returns sacrebleu's signature; over documents it says so, as these scores compare with no others."""
    if level == "document":
        signature.update("segments", "documents")
    return str(signature)
