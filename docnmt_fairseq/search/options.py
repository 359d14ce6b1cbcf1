"""Search options with the defaults of ``fairseq-generate``."""

import math
from dataclasses import dataclass
from typing import Iterator

from docnmt_fairseq.errors import refuse
from docnmt_fairseq.options import flag_of

MINIMUM = {"beam": 1, "min_len": 0, "max_len_b": 1, "max_len_a": 0, "no_repeat_ngram_size": 0, "nbest": 1, "seed": 0}
FINITE = ("max_len_a", "lenpen", "unkpen", "temperature")
MAX_LENPEN = 10  # higher powers of lengths overflow in float32


@dataclass(frozen=True)
class SearchOptions:
    """Search options.

    Attributes:
        beam: beam size.
        lenpen: scores are divided by the length to this power.
        unkpen: penalty of the unknown word.
        min_len: minimum number of tokens before the end of sentence, unless a prefix ends earlier.
        max_len_a, max_len_b: maximum length a · x + b, for x source tokens.
        no_repeat_ngram_size: size of n-grams that must not occur twice outside of the prefix; 0: off.
        sampling: every hypothesis samples its tokens.
        sampling_topk: sample from the k most probable tokens; 0: all.
        sampling_topp: sample from the smallest set of tokens with this cumulative probability; 0: all.
        temperature: divisor of the logits.
        seed: seed of sampling, which otherwise depends on the file and line of a sentence only.
        nbest: number of hypotheses to return per sentence.
        unnormalized: scores are sums of log-probabilities.
    """

    beam: int = 5
    lenpen: float = 1.0
    unkpen: float = 0.0
    min_len: int = 1
    max_len_a: float = 0.0
    max_len_b: int = 200
    no_repeat_ngram_size: int = 0
    sampling: bool = False
    sampling_topk: int = 0
    sampling_topp: float = 0.0
    temperature: float = 1.0
    seed: int = 1
    nbest: int = 1
    unnormalized: bool = False

    def check(self) -> None:
        """Raises :class:`InputError` with all options that are out of range or inconsistent."""
        refuse(self.problems())

    def problems(self) -> Iterator[str]:
        """Yields the problems of options."""
        for name, least in MINIMUM.items():
            if getattr(self, name) < least:
                yield f"{flag_of(name)} {getattr(self, name)}: at least {least}"
        for name in FINITE:
            if not math.isfinite(getattr(self, name)):
                yield f"{flag_of(name)} {getattr(self, name)}: a finite number"
        if math.isfinite(self.lenpen) and abs(self.lenpen) > MAX_LENPEN:
            yield f"--lenpen {self.lenpen}: from -{MAX_LENPEN} to {MAX_LENPEN}"
        if self.no_repeat_ngram_size == 1:
            yield "--no-repeat-ngram-size 1: at least 2, or 0, with which any may"
        if self.max_len_a == 0 and self.min_len > self.max_len_b:
            yield f"--min-len {self.min_len}: more than --max-len-b {self.max_len_b}"
        if self.nbest > self.beam:
            yield f"--nbest {self.nbest}: at most --beam {self.beam}"
        if self.temperature <= 0:
            yield f"--temperature {self.temperature}: above 0"
        if not 0 <= self.sampling_topp <= 1:
            yield f"--sampling-topp {self.sampling_topp}: a probability is between 0 and 1"
        if self.sampling_topk < 0:
            yield f"--sampling-topk {self.sampling_topk}: at least 0"
        if self.sampling_topk and self.sampling_topp:
            yield "--sampling-topk and --sampling-topp: give one of them"
        for name in ("sampling_topk", "sampling_topp"):
            if getattr(self, name) and not self.sampling:
                yield f"{flag_of(name)}: needs --sampling"

    def longest(self, source_tokens: int, positions: int) -> int:
        """Returns the maximum number of tokens before the end of sentence.

        Args:
            source_tokens: number of source tokens with end of sentence.
            positions: maximum number of target tokens of the models.
        """
        return int(min(self.max_len_a * source_tokens + self.max_len_b, positions - 1))
