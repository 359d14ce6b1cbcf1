"""Hypotheses of beam search, with the rules of fairseq.

A step has 2 · beam candidates, best first. Candidates among the first ``beam`` that end the sentence become finished
hypotheses; the first ``beam`` of the others continue. A sentence is finished when it has ``beam`` finished hypotheses,
or at its length limit. All arrays are small and stay on the host, in NumPy.
"""

from dataclasses import dataclass, field
from typing import Dict, List, Tuple

import numpy as np
import torch

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.search.options import SearchOptions

NONE = -1  # no forced token
FREE = -2  # the same within a prefix: min_len does not apply, as in fairseq's search
OF_TOKENS = ("tokens", "scores", "made_by")
OF_SLOTS = ("busy", "steps", "limits", "totals", "ignored", "prefixes", *OF_TOKENS)


@dataclass(frozen=True)
class Candidates:
    """Candidate tokens for the hypotheses of S sentences, [S, c] each, best first.

    Attributes:
        scores: summed log-probabilities, float32.
        tokens: next tokens.
        parents: hypotheses that they continue.
    """

    scores: np.ndarray
    tokens: np.ndarray
    parents: np.ndarray


@dataclass(frozen=True)
class Constraints:
    """Constraints on the next tokens.

    Attributes:
        forced: [S] forced token, or :data:`NONE`.
        replicated: [k] sentences whose prefix ends here; all hypotheses become the first one.
        endless: [k] sentences that must not end here.
        banned: sentence, hypothesis and banned token, [k] each.
    """

    forced: np.ndarray
    replicated: np.ndarray
    endless: np.ndarray
    banned: Tuple[np.ndarray, ...]


@dataclass
class Beams:
    """Hypotheses of the sentences in S slots.

    Attributes:
        options: search options.
        beam: number of hypotheses per sentence.
        eos: index of the end of sentence.
        busy: [S] the slot has a sentence.
        steps: [S] length of its hypotheses.
        limits: [S] maximum length.
        tokens: [S, beam, ·] end of sentence, then the tokens.
        scores: [S, beam, ·] cumulative log-probabilities.
        totals: [S, beam] last cumulative log-probability; −∞: not a hypothesis.
        made_by: [S, beam, ·] hypothesis of the slot whose decoder step produced each token.
    """

    options: SearchOptions
    beam: int
    eos: int
    busy: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __post_init__(self) -> None:
        self.steps = np.zeros(0, dtype=np.int64)
        self.limits = np.zeros(0, dtype=np.int64)
        self.tokens = np.full((0, self.beam, 16), self.eos, dtype=np.int64)
        self.scores = np.zeros((0, self.beam, 16), dtype=np.float32)
        self.made_by = np.zeros((0, self.beam, 16), dtype=np.int64)
        self.totals = np.zeros((0, self.beam), dtype=np.float32)
        self.replicated = np.zeros(0, dtype=np.int64)
        self.ignored = np.zeros((0, self.beam), dtype=bool)
        self.prefixes = np.full((0, 0), NONE, dtype=np.int64)
        self.ended: List[List[Hypothesis]] = []

    def __len__(self) -> int:
        return len(self.busy)

    def extend(self, count: int) -> None:
        """Adds free slots."""
        for name in OF_SLOTS:
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((count, *array.shape[1:]), dtype=array.dtype)]))
        self.ended += [[] for _ in range(count)]

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        for name in OF_SLOTS:
            setattr(self, name, getattr(self, name)[slots])
        self.ended = [self.ended[slot] for slot in slots]

    def admit(self, slot: int, limit: int, prefix: np.ndarray) -> None:
        """Starts a sentence in a free slot.

        Args:
            slot: number of the slot.
            limit: maximum number of tokens before the end of sentence.
            prefix: [·] forced first tokens, or :data:`FREE`.
        """
        missing = len(prefix) - self.prefixes.shape[1]
        if missing > 0:
            self.prefixes = np.pad(self.prefixes, ((0, 0), (0, missing)), constant_values=NONE)
        self.prefixes[slot] = NONE
        self.prefixes[slot, : len(prefix)] = prefix
        self.busy[slot], self.steps[slot], self.limits[slot] = True, 0, limit
        self.tokens[slot, :, 0] = self.eos
        self.ended[slot] = []
        self.ignored[slot] = False
        self.totals[slot] = 0
        if not self.options.sampling:
            self.totals[slot, 1:] = -np.inf  # all are equal at first

    def written(self) -> np.ndarray:
        """Tokens of all hypotheses, [S, beam, t]; tokens after the steps of a slot are undefined."""
        return self.tokens[:, :, : int(self.steps.max(initial=0)) + 1]

    def constraints(self) -> Constraints:
        """Constraints on the next tokens; the hypotheses of sentences whose prefix ends become copies of the first."""
        at_limit = self.busy & (self.steps >= self.limits)
        forced = np.full(len(self), NONE, dtype=np.int64)
        within = self.busy & ~at_limit & (self.steps < self.prefixes.shape[1])
        rows = np.flatnonzero(within)
        forced[rows] = self.prefixes[rows, self.steps[rows]]
        replicated = self.replicated = np.flatnonzero((forced == self.eos) & (self.steps > 0))
        for name in ("totals", *OF_TOKENS):
            array = getattr(self, name)
            array[replicated] = array[replicated][:, :1]
        forced[at_limit] = self.eos
        endless = np.flatnonzero((self.steps < self.options.min_len) & (forced == NONE))
        forced[forced == FREE] = NONE
        return Constraints(forced, replicated, endless, self._repeated(forced == NONE))

    def _repeated(self, free: np.ndarray) -> Tuple[np.ndarray, ...]:
        """Sentences, hypotheses and tokens, [k] each, that would repeat an n-gram.

        Args:
            free: [S] the next token of the sentence is not forced.
        """
        n, written = self.options.no_repeat_ngram_size, self.written()
        if n < 2 or written.shape[2] < n:
            return (np.zeros(0, dtype=np.int64),) * 3
        windows = np.lib.stride_tricks.sliding_window_view(written, n, axis=2)  # [S, beam, t − n + 1, n]
        column = np.maximum(self.steps[:, None] - n + 2, 0) + np.arange(n - 1)
        last = np.take_along_axis(written, column[:, None].repeat(self.beam, 1), axis=2)  # [S, beam, n − 1]
        same = (windows[..., :-1] == last[:, :, None]).all(-1)
        same &= np.arange(windows.shape[2]) < (self.steps[:, None, None] + 2 - n)
        same &= free[:, None, None]
        sentences, hypotheses, first = same.nonzero()
        return sentences, hypotheses, windows[sentences, hypotheses, first, -1]

    def advance(self, candidates: Candidates) -> Tuple[np.ndarray, Dict[int, List[Hypothesis]]]:
        """Selects the hypotheses of the next step.

        Returns:
            The parents [S, beam] of the new hypotheses, and the hypotheses of finished sentences by slot, which is free
            then.
        """
        count, slots = candidates.tokens.shape[1], np.arange(len(self))[:, None]
        candidates.parents[self.replicated] = 0  # all are equal
        ends = (candidates.tokens == self.eos) & (candidates.scores != -np.inf) & self.busy[:, None]
        ends[:, : self.beam] &= ~self.ignored
        finished: Dict[int, List[Hypothesis]] = {}
        for slot, place in zip(*ends[:, : self.beam].nonzero()):
            if len(self.ended[slot]) < self.beam:
                parent, score = candidates.parents[slot, place], candidates.scores[slot, place]
                self.ended[slot].append(self._ended(slot, parent, score))
        ends[:, : self.beam] |= self.ignored
        order = ends * count + np.arange(count)
        chosen = order.argsort(axis=1, kind="stable")[:, : self.beam]
        self.ignored = np.take_along_axis(order, chosen, axis=1) >= count
        tokens, parents, self.totals = (
            np.take_along_axis(part, chosen, axis=1)
            for part in (candidates.tokens, candidates.parents, candidates.scores)
        )
        continues = (~self.ignored & (self.totals > -np.inf)).any(1)
        full = np.array([len(ended) for ended in self.ended]) >= self.beam
        for slot in np.flatnonzero(self.busy & (full | (self.steps >= self.limits) | ~continues)):
            finished[int(slot)] = self._finish(int(slot))
        self.steps = np.where(self.busy, self.steps + 1, 0)
        if int(self.steps.max(initial=0)) >= self.tokens.shape[2]:
            for name in OF_TOKENS:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)], axis=2))
        used = int(self.steps.max(initial=0)) + 1
        for array in (self.tokens, self.scores, self.made_by):
            array[:, :, :used] = np.take_along_axis(array[:, :, :used], parents[:, :, None], axis=1)
        hypotheses = np.arange(self.beam)
        self.tokens[slots, hypotheses, self.steps[:, None]] = tokens
        last = np.maximum(self.steps, 1)[:, None] - 1
        self.scores[slots, hypotheses, last], self.made_by[slots, hypotheses, last] = self.totals, parents
        return parents, finished

    def _ended(self, slot: int, hypothesis: int, score: np.float32) -> Hypothesis:
        """Finished hypothesis in fairseq's form."""
        length = int(self.steps[slot]) + 1
        tokens = np.append(self.tokens[slot, hypothesis, 1:length], self.eos)
        sums = np.append(self.scores[slot, hypothesis, : length - 1], score).astype(np.float32)
        per_token = np.diff(sums, prepend=np.float32(0))
        if not self.options.unnormalized:
            score = np.float32(score / np.float32(length**self.options.lenpen))
        return {
            "tokens": torch.from_numpy(tokens),
            "score": torch.tensor(score, dtype=torch.float32),
            "attention": torch.empty(0),
            "alignment": torch.empty(0),
            "positional_scores": torch.from_numpy(per_token),
            "made_by": np.append(self.made_by[slot, hypothesis, : length - 1], hypothesis),
        }

    def _finish(self, slot: int) -> List[Hypothesis]:
        """Hypotheses of a sentence, best first; frees its slot."""
        ended, self.ended[slot], self.busy[slot] = self.ended[slot], [], False
        if not ended:  # everything allowed has probability 0
            ended = [self._ended(slot, 0, np.float32(-np.inf))]
        return sorted(ended, key=lambda hypothesis: -float(hypothesis["score"]))
