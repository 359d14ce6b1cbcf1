"""Which sentences a sentence has as context: of its document the previous, the next, some at random, or similar ones.

([M] sec. 4.3, table 4; Voita et al. 2018, Miculicich et al. 2018: the previous ones. Similar by sentence vectors, which
[Z] sec. 4.1 uses to find texts.) Or some of the training set, which have no bearing on it ([M] sec. 6.2).
"""

from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import Choices

CONTEXT_SELECTIONS = Choices(("previous", "next", "random", "random-each-epoch", "similar", "training-set"))


@dataclass(frozen=True)
class ContextSentences:
    """The context of every sentence, in the document's order.

    Attributes:
        counts: [R] how many context sentences each row has; 0 where there is none, as at a document's start.
        sentences: [P] their rows, those of row 0 first.
        has_context: [N] which tokens have context.
    """

    counts: np.ndarray
    sentences: np.ndarray
    has_context: Tensor

    @property
    def rows(self) -> np.ndarray:
        """The rows that have context, ascending."""
        return np.flatnonzero(self.counts)

    @property
    def first(self) -> np.ndarray:
        """Where each row's context begins in ``sentences``, [R]."""
        return np.cumsum(self.counts) - self.counts

    @property
    def row_of_sentence(self) -> np.ndarray:
        """The row whose context each of ``sentences`` is, [P]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True)
class Neighbours(PlanKey[ContextSentences]):
    """The context of every row.

    Attributes:
        contexts: N, how many sentences at most, those nearest for ``previous`` and ``next``.
        selection: of ``CONTEXT_SELECTIONS``; ``random`` draws from the document's other sentences, from the seed and
            the lengths of the document's sentences alone: the same choice in whatever batch, in training and after;
            ``random-each-epoch`` draws anew in every epoch of the training, and after it as if there were one more;
            ``similar`` takes the most similar of the earlier sentences that are in the batch; ``training-set`` those
            that the batch brings along for each, as documents of their own.
        seed: of the random choice.
    """

    contexts: int
    selection: str = "previous"
    seed: int = 1

    def make(self, layout: DocumentLayout) -> ContextSentences:
        """See :class:`PlanKey`; :class:`InputError` where the batch does not say which sentences are similar."""
        if self.selection in ("random", "random-each-epoch"):
            seed = [self.seed] if self.selection == "random" else [self.seed, layout.epoch]
            counts, found = _at_random(layout.sentences, layout.tokens.lengths, self.contexts, seed)
        elif self.selection == "similar":
            counts, found = _most_similar(layout.sentences, layout.similar, self.contexts)
        elif self.selection == "training-set":
            counts, found = _drawn(layout.drawn, layout.tokens.rows, self.contexts)
        else:
            counts, found = _nearest(layout.sentences, self.contexts, following=self.selection == "next")
        return ContextSentences(counts, found, layout.index(np.repeat(counts > 0, layout.tokens.lengths)))


@dataclass(frozen=True)
class GatheredPlan:
    """An attention plan between states that are looked up first.

    Attributes:
        queries: [queries of the plan] numbers of the states that they are.
        keys: [keys of the plan] the same of the keys.
        plan: which queries see which keys.
    """

    queries: Tensor
    keys: Tensor
    plan: AttentionPlan

    @classmethod
    def make(cls, tokens: Ragged, rows: np.ndarray, keys: np.ndarray, key_lengths: np.ndarray) -> "GatheredPlan":
        """The plan in which the tokens of ``rows[i]`` see the next ``key_lengths[i]`` of the tokens ``keys``."""
        plan = AttentionPlan(Ragged(tokens.lengths[rows], tokens.device), Ragged(key_lengths, tokens.device))
        return cls(tokens.index(tokens.items_of(rows)), tokens.index(keys), plan)

    @property
    def gather(self) -> Tuple[Tensor, Tensor]:
        """The numbers of the states, of queries and of keys."""
        return self.queries, self.keys

    def scatter(self, results: Tensor, states: int) -> Tensor:
        """Each query's result at its state, [states, ...], and zero elsewhere; no state is two queries."""
        return results.new_zeros(states, *results.shape[1:]).index_copy(0, self.queries, results)


@dataclass(frozen=True)
class ToNeighbourTokens(PlanKey[GatheredPlan]):
    """Tokens attend to all tokens of their context sentences together; ``of`` says which these are."""

    of: Neighbours

    def make(self, layout: DocumentLayout) -> GatheredPlan:
        """See :class:`PlanKey`."""
        tokens, contexts = layout.tokens, layout.plan(self.of)
        lengths = tokens.lengths[contexts.sentences]
        if len(lengths):
            lengths = np.add.reduceat(lengths, contexts.first[contexts.rows])
        return GatheredPlan.make(tokens, contexts.rows, tokens.items_of(contexts.sentences), lengths)


@dataclass(frozen=True)
class TwoLevelPlan:
    """How tokens attend to each of their context sentences, and then to what that gave.

    Attributes:
        each: to the tokens of each context sentence by itself. The queries, M in all, are the tokens of row 0 for its
            first context sentence, for its second, …, of row 1, ….
        sentence: [M] the sentence that each of these queries looks into.
        over: to what ``each`` gave them, one result a sentence.
    """

    each: GatheredPlan
    sentence: Tensor
    over: GatheredPlan


@dataclass(frozen=True)
class ToEachNeighbour(PlanKey[TwoLevelPlan]):
    """Tokens attend to each of their context sentences; ``of`` says which these are."""

    of: Neighbours

    def make(self, layout: DocumentLayout) -> TwoLevelPlan:
        """See :class:`PlanKey`."""
        tokens, contexts = layout.tokens, layout.plan(self.of)
        rows, sentences = contexts.row_of_sentence, contexts.sentences
        each = GatheredPlan.make(tokens, rows, tokens.items_of(sentences), tokens.lengths[sentences])
        counts = np.repeat(contexts.counts, tokens.lengths)
        queries, keys = np.flatnonzero(counts), np.argsort(tokens.items_of(rows), kind="stable")
        each_alone = Ragged(np.ones_like(queries), layout.device)
        plan = AttentionPlan(each_alone, Ragged(counts[queries], layout.device))
        over = GatheredPlan(layout.index(queries), layout.index(keys), plan)
        return TwoLevelPlan(each, layout.index(np.repeat(sentences, tokens.lengths[rows])), over)


def _nearest(documents: Ragged, contexts: int, following: bool) -> Tuple[np.ndarray, np.ndarray]:
    """Counts [R] and sentences [P]: the nearest before, or following, each row."""
    row = np.arange(documents.total)
    document = np.repeat(np.arange(documents.rows), documents.lengths)
    place = row - documents.offsets[document]
    available = documents.lengths[document] - 1 - place if following else place
    counts = np.minimum(available, contexts)
    first = row + 1 if following else row - counts
    before = np.cumsum(counts) - counts
    return counts, np.repeat(first - before, counts) + np.arange(int(counts.sum()))


def _at_random(
    documents: Ragged, token_lengths: np.ndarray, contexts: int, seed: List[int]
) -> Tuple[np.ndarray, np.ndarray]:
    """Counts [R] and sentences [P]: others of the same document, without repetition, in its order."""
    counts, chosen = [], [np.zeros(0, dtype=np.int64)]
    for start, length in zip(documents.offsets, documents.lengths):
        count = min(contexts, int(length) - 1)
        counts.append(np.full(length, count))
        # The lengths tell documents apart, wherever they stand: no number of theirs depends on the batch.
        draw = np.random.default_rng([*seed, *token_lengths[start : start + length]]).random((length, length))
        np.fill_diagonal(draw, np.inf)
        chosen.append((start + np.sort(np.argsort(draw, axis=1)[:, :count], axis=1)).ravel())
    return np.concatenate(counts), np.concatenate(chosen)


def _most_similar(documents: Ragged, back: Optional[np.ndarray], contexts: int) -> Tuple[np.ndarray, np.ndarray]:
    """Counts [R] and sentences [P]: those that stand ``back`` [R, K], without what is before the document."""
    row = np.arange(documents.total)
    place = row - np.repeat(documents.offsets[:-1], documents.lengths)
    if back is None:
        if place.any():
            raise InputError("the model's context is similar sentences, but these documents come without")
        back = np.zeros((len(row), contexts), dtype=np.int16)
    if back.shape[1] < contexts:
        raise InputError(
            f"the model has {contexts} similar sentences as context, but only {back.shape[1]} of each are known"
        )
    there = (back > 0) & (back <= place[:, None])
    there &= np.cumsum(there, axis=1) <= contexts
    sentences = np.sort(np.where(there, row[:, None] - back, documents.total), axis=1)
    return there.sum(axis=1), sentences[sentences < documents.total]


def _drawn(drawn: Optional[np.ndarray], rows: int, contexts: int) -> Tuple[np.ndarray, np.ndarray]:
    """Counts [R] and sentences [P]: the first of those that were drawn for each; without any there is no context."""
    if drawn is None:
        return np.zeros(rows, dtype=np.int64), np.zeros(0, dtype=np.int64)
    found = drawn[:, :contexts]
    return (found >= 0).sum(axis=1), found[found >= 0]
