"""BLEU (Papineni et al. 2002) by sacreBLEU; over documents it is d-BLEU."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import METRICS, MetricOptions
from docnmt_fairseq.evaluation.metrics.sacrebleu_metric import LOWERCASE, SacrebleuMetric
from docnmt_fairseq.options import Choices, option

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

SMOOTHING = Choices(("exp", "none", "floor", "add-k"))


@dataclass(frozen=True)
class BleuOptions(MetricOptions):
    """How text is made tokens, and how counts of zero are met."""

    tokenize: Optional[str] = option(
        None,
        "tokeniser (default: 13a): zh, ja-mecab, ...; none for published scores over tokens, of texts tokenised alike "
        "(with --smooth none and --level sentence, what multi-bleu.perl computes)",
        metavar="NAME",
    )
    smooth: str = option("exp", "smoothing", names=SMOOTHING)
    lowercase: bool = option(False, LOWERCASE)


@METRICS.register("bleu")
class Bleu(SacrebleuMetric):
    """Precision of n-grams of up to four tokens, with a penalty for brevity."""

    title = "BLEU"
    help = "n-grams of up to four tokens"
    Options = BleuOptions
    options: BleuOptions
    effective_order: ClassVar[bool] = False

    def make(self, references: Optional[Sequence[Sequence[str]]]) -> "BLEU":
        """See :meth:`SacrebleuMetric.make`.

        Raises:
            InputError: sacreBLEU has no such tokeniser, or lacks what it needs.
        """
        from sacrebleu.metrics.bleu import BLEU

        tokenize = self.options.tokenize
        if tokenize is not None and tokenize not in BLEU.TOKENIZERS:
            raise InputError(f"--tokenize {tokenize}: no such tokeniser; there are {', '.join(BLEU.TOKENIZERS)}")
        try:
            return BLEU(
                lowercase=self.options.lowercase,
                force=tokenize == "none",  # no warning that the text seems to be tokenised
                tokenize=tokenize,
                smooth_method=self.options.smooth,
                effective_order=self.effective_order,
                references=references,
            )
        except (ImportError, RuntimeError, OSError) as error:
            raise InputError(f"--tokenize {tokenize}: {error}".replace("\n", " ")) from error


class SentenceBleu(Bleu):
    """BLEU of single sentences: only n-grams that they have, or all of fewer than four tokens would score 0.

    It has no name on the command line: a corpus is scored by :class:`Bleu`.
    """

    effective_order = True
