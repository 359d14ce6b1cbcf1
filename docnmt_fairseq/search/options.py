"""What a search can be told: :class:`SearchOptions`, with the defaults of ``fairseq-generate``."""

import math
from dataclasses import dataclass
from typing import Iterator

from docnmt_fairseq.errors import refuse
from docnmt_fairseq.options import flag_of

LEAST = {"beam": 1, "min_len": 0, "max_len_b": 1, "max_len_a": 0, "no_repeat_ngram_size": 0, "nbest": 1, "seed": 0}
FINITE = ("max_len_a", "lenpen", "unkpen", "temperature")
MOST_LENPEN = 10  # of lengths to a higher power float32 has no number


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        beam: hypotheses of a sentence.
        lenpen: scores are divided by the length to this power.
        unkpen: is subtracted from the log-probability of the unknown word.
        min_len: tokens before the end of sentence, at least; not where a prefix says otherwise.
        max_len_a, max_len_b: at most a · x + b tokens before the end of sentence, x those of its source.
        no_repeat_ngram_size: no n-gram of so many tokens comes twice in a sentence, but for its prefix; 0: any may.
        sampling: every hypothesis draws its tokens.
        sampling_topk: draw among so many most probable tokens; 0: among all.
        sampling_topp: draw among the most probable tokens that have this probability together; 0: among all.
        temperature: logits are divided by it.
        seed: of what is drawn; a sentence's draws depend on it and on the sentence's file and line alone.
        nbest: hypotheses of each sentence that are wanted.
        unnormalized: scores stay sums of log-probabilities.
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
        """Raises :class:`InputError` for what is out of range or has no effect, all of it."""
        refuse(self.problems())

    def problems(self) -> Iterator[str]:
        """What is out of range or has no effect, each by its flag."""
        for name, least in LEAST.items():
            if getattr(self, name) < least:
                yield f"{flag_of(name)} {getattr(self, name)}: at least {least}"
        for name in FINITE:
            if not math.isfinite(getattr(self, name)):
                yield f"{flag_of(name)} {getattr(self, name)}: a finite number"
        if math.isfinite(self.lenpen) and abs(self.lenpen) > MOST_LENPEN:
            yield f"--lenpen {self.lenpen}: from -{MOST_LENPEN} to {MOST_LENPEN}"
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
        """How many tokens a translation has before its end, at most.

        Args:
            source_tokens: of the sentence, its end included.
            positions: that the models have.
        """
        return int(min(self.max_len_a * source_tokens + self.max_len_b, positions - 1))
