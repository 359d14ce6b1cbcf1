"""Search options with the defaults of ``fairseq-generate``."""

from dataclasses import dataclass
from typing import Iterator

from docnmt_fairseq.errors import refuse
from docnmt_fairseq.options import option, problems_of


@dataclass(frozen=True)
class SearchOptions:
    """Search options.

    Raises:
        InputError: options that are out of range or inconsistent; lists all of them.
    """

    beam: int = option(5, "beam size", minimum=1)
    lenpen: float = option(1.0, "scores are divided by the length to this power", minimum=-10, maximum=10)
    unkpen: float = option(0.0, "penalty of unknown words")
    min_len: int = option(1, "minimum number of tokens, unless a prefix is shorter", minimum=0)
    max_len_a: float = option(0.0, "maximum length of a translation is a x + b tokens", minimum=0)
    max_len_b: int = option(200, "for x source tokens", minimum=1)
    no_repeat_ngram_size: int = option(0, "no n-gram of this size occurs twice outside of the prefix", minimum=0)
    sampling: bool = option(False, "every hypothesis samples its tokens")
    sampling_topk: int = option(0, "sample from the k most probable tokens; 0: all", minimum=0)
    sampling_topp: float = option(
        0.0, "nucleus sampling: smallest set of tokens with cumulative probability >= p; 0: all", minimum=0, maximum=1
    )
    temperature: float = option(1.0, "divisor of the logits")
    seed: int = option(1, "seed of sampling, which otherwise depends on the file and line of a sentence", minimum=0)
    nbest: int = option(1, "number of hypotheses per sentence in the output", minimum=1)
    unnormalized: bool = option(False, "compare sums of log-probabilities")

    def __post_init__(self) -> None:
        refuse([*problems_of(self, SearchOptions), *self._inconsistent()])

    def _inconsistent(self) -> Iterator[str]:
        if self.no_repeat_ngram_size == 1:
            yield "--no-repeat-ngram-size 1: must be at least 2, or 0 for no limit"
        if self.max_len_a == 0 and self.min_len > self.max_len_b:
            yield f"--min-len {self.min_len}: must be at most --max-len-b {self.max_len_b}"
        if self.nbest > self.beam:
            yield f"--nbest {self.nbest}: must be at most --beam {self.beam}"
        if not self.temperature > 0:
            yield f"--temperature {self.temperature}: must be above 0"
        if self.sampling_topk and self.sampling_topp:
            yield "--sampling-topk and --sampling-topp: give one of them"

    def longest(self, source_tokens: int, positions: int) -> int:
        """Maximum number of tokens before the end of sentence.

        Args:
            source_tokens: number of source tokens with end of sentence.
            positions: maximum number of target tokens of the models.
        """
        return int(min(self.max_len_a * source_tokens + self.max_len_b, positions - 1))
