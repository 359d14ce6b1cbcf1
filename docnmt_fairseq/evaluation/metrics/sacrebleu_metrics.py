"""BLEU, chrF and TER by sacreBLEU.

sacreBLEU's ``corpus_score`` extracts the statistics of segments and computes the score of their sum; the names of these
two steps are not public.
"""

import logging
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Dict, Iterable, List, Optional, Sequence

from docnmt_fairseq.evaluation.metrics.base import METRICS, Metric, MetricOptions, Statistics
from docnmt_fairseq.evaluation.texts import References, Stream, segments
from docnmt_fairseq.evaluation.words import UNSPACED
from docnmt_fairseq.options import Choices, option

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as LibraryMetric

logger = logging.getLogger(__name__)

LOWERCASE = "ignore case"
UNSEGMENTED = 6  # characters per space-separated word; segmented Chinese, Japanese and Thai have fewer
SLOW_TER = 300  # words of a segment; sacreBLEU takes seconds for these, and about ten times as long for twice as many
SMOOTHING = Choices(("exp", "none", "floor", "add-k"))


class SacrebleuMetric(Metric, ABC):
    """Adapter for sacreBLEU's metrics; subclasses implement ``make``."""

    def __init__(self, test_set: References, options: MetricOptions):
        super().__init__(test_set, options)
        self.library = self.make([segments(stream) for stream in test_set.streams])

    @abstractmethod
    def make(self, references: List[List[str]]) -> "LibraryMetric":
        """Creates the library's metric, which caches the statistics of these references."""

    def statistics(self, translation: Stream) -> Statistics:
        """Statistics of sacreBLEU."""
        return self.library._extract_corpus_statistics(segments(translation), None)

    def score(self, sums: Sequence[float]) -> float:
        """Score of sacreBLEU."""
        return self.library._compute_score_from_stats(list(sums)).score

    def corpus_score(self, statistics: Statistics) -> float:
        """Score of sacreBLEU."""
        return self.library._aggregate_and_compute(statistics).score

    def format_signature(self, details: Dict[str, object]) -> str:
        """Signature of sacreBLEU, followed by the details."""
        signature = self.library.get_signature()
        for name, value in details.items():
            signature.update(name, value)
        return str(signature)


@dataclass(frozen=True)
class BleuOptions(MetricOptions):
    """Options of BLEU."""

    tokenize: Optional[str] = option(
        None,
        "tokeniser (default: 13a): zh, ja-mecab, ...; none for published scores of tokenised text (with --smooth none "
        "and --level sentence, equal to multi-bleu.perl)",
        metavar="NAME",
    )
    smooth: str = option("exp", "smoothing", names=SMOOTHING)
    lowercase: bool = option(False, LOWERCASE)


@METRICS.register("bleu")
class Bleu(SacrebleuMetric):
    """BLEU (Papineni et al. 2002); d-BLEU at document level."""

    title = "BLEU"
    help = "n-grams of up to four tokens"
    Options = BleuOptions
    options: BleuOptions
    effective_order: ClassVar[bool] = False

    def __init__(self, test_set: References, options: BleuOptions):
        super().__init__(test_set, options)
        if options.tokenize is None and test_set.level == "sentence" and _lacks_spaces(segments(test_set.streams[0])):
            logger.warning(
                "BLEU: the references have no spaces between words; use docnmt score --tokenize zh, ja-mecab or char"
            )

    def make(self, references: List[List[str]]) -> "LibraryMetric":
        """Creates the metric of sacreBLEU."""
        from sacrebleu.metrics.bleu import BLEU

        tokenize = self.options.tokenize
        return BLEU(
            lowercase=self.options.lowercase,
            force=tokenize == "none",  # without a warning about tokenised text
            tokenize=tokenize,
            smooth_method=self.options.smooth,
            effective_order=self.effective_order,
            references=references,
        )


def _lacks_spaces(lines: Iterable[str]) -> bool:
    """Returns whether most characters are of scripts without spaces, and the text is not segmented into words."""
    words = [word for line in lines for word in line.split()]
    letters = sum(map(len, words))
    unspaced = sum(len(re.findall(f"[{UNSPACED}]", word)) for word in words)
    return unspaced > letters / 2 and letters > UNSEGMENTED * len(words)


class SentenceBleu(Bleu):
    """BLEU of single sentences, with the n-gram orders that they have; otherwise short sentences score 0."""

    effective_order = True


@dataclass(frozen=True)
class ChrfOptions(MetricOptions):
    """Options of chrF."""

    lowercase: bool = option(False, LOWERCASE)


@METRICS.register("chrf")
class Chrf(SacrebleuMetric):
    """chrF (Popović 2015), F2 of character n-grams."""

    title = "chrF2"
    help = "n-grams of up to six characters"
    Options = ChrfOptions
    options: ChrfOptions
    word_order: ClassVar[int] = 0

    def make(self, references: List[List[str]]) -> "LibraryMetric":
        """Creates the metric of sacreBLEU."""
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(word_order=self.word_order, lowercase=self.options.lowercase, references=references)


@METRICS.register("chrf++")
class ChrfPlusPlus(Chrf):
    """chrF++ (Popović 2017), with word unigrams and bigrams."""

    title = "chrF2++"
    help = "chrf with word unigrams and bigrams"
    word_order = 2


@METRICS.register("ter")
class Ter(SacrebleuMetric):
    """Translation edit rate (Snover et al. 2006), without case."""

    title = "TER"
    help = "translation edit rate without case (very slow for long documents: --level sentence)"
    lower_is_better = True
    case_sensitive: ClassVar[bool] = False

    def make(self, references: List[List[str]]) -> "LibraryMetric":
        """Creates the metric of sacreBLEU."""
        from sacrebleu.metrics.ter import TER

        longest = max((len(segment.split()) for stream in references for segment in stream), default=0)
        if longest > SLOW_TER:
            logger.warning(f"{self.title} of up to {longest:,} words takes very long; --level sentence omits documents")
        return TER(case_sensitive=self.case_sensitive, references=references)


@METRICS.register("hter")
class Hter(Ter):
    """Human-targeted TER (Snover et al. 2006) with case, as in WMT's automatic post-editing tasks.

    The reference is a post-edit of the machine translation.
    """

    title = "HTER"
    help = "ter with case, against post-edits"
    case_sensitive = True
