"""Selection of context sentences: previous, next, random or similar ones of the document, or training sentences.

[M] sec. 4.3, table 4; Voita et al. 2018 and Miculicich et al. 2018 use the previous ones. Similarity is that of
sentence vectors ([Z] sec. 4.1). Sentences of the training set, which are unrelated, are an ablation ([M] sec. 6.2).
"""

from dataclasses import dataclass
from typing import List, Optional, Tuple

import numpy as np
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged, ranges
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import Choices

CONTEXT_SELECTIONS = Choices(("previous", "next", "random", "random-each-epoch", "similar", "training-set"))


@dataclass(frozen=True)
class ContextRows:
    """Context sentences of every sentence, in document order."""

    counts: np.ndarray  # [R] number of context sentences of each row; 0 without any, as at the start of a document
    sentences: np.ndarray  # [P] their rows, those of row 0 first
    has_context: Tensor  # [N] True for tokens with context

    @property
    def rows(self) -> np.ndarray:
        """Rows that have context, ascending."""
        return np.flatnonzero(self.counts)

    @property
    def first(self) -> np.ndarray:
        """Index in ``sentences`` of each row's first context sentence, [R]."""
        return np.cumsum(self.counts) - self.counts

    @property
    def row_of_sentence(self) -> np.ndarray:
        """Row that each of ``sentences`` is context of, [P]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True)
class ContextSentences(PlanKey[ContextRows]):
    """Context sentences of every row."""

    contexts: int  # N, the maximum number of sentences; for ``previous`` and ``next`` the nearest ones
    # one of ``CONTEXT_SELECTIONS``. ``random`` draws other sentences of the document; the draw depends on the seed and
    # the sentence lengths of the document only, so it is the same in every batch, in training and inference.
    # ``random-each-epoch`` draws again in every epoch of training. ``similar`` takes the most similar previous
    # sentences in the batch. ``training-set`` takes sentences that the batch contains for this purpose, each a document
    # of its own.
    selection: str = "previous"
    seed: int = 1  # seed of the random choice

    def make(self, layout: DocumentLayout) -> ContextRows:
        """Makes the plan; ``InputError`` if the batch has no similar sentences but needs them."""
        if self.selection in ("random", "random-each-epoch"):
            seed = [self.seed] if self.selection == "random" else [self.seed, layout.epoch]
            counts, found = _random(layout.sentences, layout.tokens.lengths, self.contexts, seed)
        elif self.selection == "similar":
            counts, found = _most_similar(layout.sentences, layout.similar, self.contexts)
        elif self.selection == "training-set":
            counts, found = _drawn(layout.drawn, layout.tokens.rows, self.contexts)
        else:
            counts, found = _nearest(layout.sentences, self.contexts, following=self.selection == "next")
        return ContextRows(counts, found, layout.index(np.repeat(counts > 0, layout.tokens.lengths)))


@dataclass(frozen=True)
class GatheredPlan:
    """Attention plan between states that are gathered first."""

    queries: Tensor  # [queries of the plan] indices of their states
    keys: Tensor  # [keys of the plan] indices of their states
    plan: AttentionPlan  # which queries attend to which keys

    @classmethod
    def make(cls, tokens: Ragged, rows: np.ndarray, keys: np.ndarray, key_lengths: np.ndarray) -> "GatheredPlan":
        """Returns the plan in which tokens of ``rows[i]`` attend to the next ``key_lengths[i]`` of ``keys``."""
        plan = AttentionPlan(Ragged(tokens.lengths[rows], tokens.device), Ragged(key_lengths, tokens.device))
        return cls(tokens.index(tokens.items_of(rows)), tokens.index(keys), plan)

    @property
    def gather(self) -> Tuple[Tensor, Tensor]:
        """Indices of the states of queries and keys."""
        return self.queries, self.keys

    def scatter(self, results: Tensor, states: int) -> Tensor:
        """Returns each query's result at its state, [states, ...], and zero elsewhere; no state is queried twice."""
        return results.new_zeros(states, *results.shape[1:]).index_copy(0, self.queries, results)


@dataclass(frozen=True)
class ToContextTokens(PlanKey[GatheredPlan]):
    """Tokens attend to all tokens of their context sentences jointly."""

    of: ContextSentences

    def make(self, layout: DocumentLayout) -> GatheredPlan:
        tokens, contexts = layout.tokens, layout.plan(self.of)
        lengths = tokens.lengths[contexts.sentences]
        if len(lengths):
            lengths = np.add.reduceat(lengths, contexts.first[contexts.rows])
        return GatheredPlan.make(tokens, contexts.rows, tokens.items_of(contexts.sentences), lengths)


@dataclass(frozen=True)
class TwoLevelPlan:
    """Attention of tokens to each of their context sentences, and then to the results."""

    # attention to the tokens of one context sentence. The queries, M in all, are the tokens of row 0 for its first
    # context sentence, for its second, …, then those of row 1, ….
    each: GatheredPlan
    sentence: Tensor  # [M] context sentence of each query
    over: GatheredPlan  # attention to the results of ``each``, one per context sentence


@dataclass(frozen=True)
class ToEachContextSentence(PlanKey[TwoLevelPlan]):
    """Tokens attend to each of their context sentences separately."""

    of: ContextSentences

    def make(self, layout: DocumentLayout) -> TwoLevelPlan:
        tokens, contexts = layout.tokens, layout.plan(self.of)
        rows, sentences = contexts.row_of_sentence, contexts.sentences
        each = GatheredPlan.make(tokens, rows, tokens.items_of(sentences), tokens.lengths[sentences])
        counts = np.repeat(contexts.counts, tokens.lengths)
        queries, keys = np.flatnonzero(counts), np.argsort(tokens.items_of(rows), kind="stable")
        plan = AttentionPlan(Ragged(np.ones_like(queries), layout.device), Ragged(counts[queries], layout.device))
        over = GatheredPlan(layout.index(queries), layout.index(keys), plan)
        return TwoLevelPlan(each, layout.index(np.repeat(sentences, tokens.lengths[rows])), over)


# Each selection returns counts [R] and sentences [P], see :class:`ContextRows`.


def _nearest(documents: Ragged, contexts: int, following: bool) -> Tuple[np.ndarray, np.ndarray]:
    """The nearest sentences before (or after) each row."""
    row = np.arange(documents.total)
    document = np.repeat(np.arange(documents.rows), documents.lengths)
    place = row - documents.offsets[document]
    available = documents.lengths[document] - 1 - place if following else place
    counts = np.minimum(available, contexts)
    return counts, ranges(row + 1 if following else row - counts, counts)


def _random(
    documents: Ragged, token_lengths: np.ndarray, contexts: int, seed: List[int]
) -> Tuple[np.ndarray, np.ndarray]:
    """Other sentences of the same document without repetition, in document order."""
    counts, chosen = [], [np.zeros(0, dtype=np.int64)]
    for start, length in zip(documents.offsets, documents.lengths):
        count = min(contexts, int(length) - 1)
        counts.append(np.full(length, count))
        # Seeded with the lengths: the draw identifies the document and does not depend on the batch.
        draw = np.random.default_rng([*seed, *token_lengths[start : start + length]]).random((length, length))
        np.fill_diagonal(draw, np.inf)
        chosen.append((start + np.sort(np.argsort(draw, axis=1)[:, :count], axis=1)).ravel())
    return np.concatenate(counts), np.concatenate(chosen)


def _most_similar(documents: Ragged, distance: Optional[np.ndarray], contexts: int) -> Tuple[np.ndarray, np.ndarray]:
    """The sentences ``distance`` [R, K] rows before each row, unless they are in another document."""
    row = np.arange(documents.total)
    place = row - np.repeat(documents.offsets[:-1], documents.lengths)
    if distance is None and not place.any():
        distance = np.zeros((len(row), contexts), dtype=np.int16)
    if distance is None or distance.shape[1] < contexts:
        raise InputError(f"the model needs {contexts} similar sentences for each; run docnmt embed neighbours")
    valid = (distance > 0) & (distance <= place[:, None])
    valid &= np.cumsum(valid, axis=1) <= contexts
    sentences = np.sort(np.where(valid, row[:, None] - distance, documents.total), axis=1)
    return valid.sum(axis=1), sentences[sentences < documents.total]


def _drawn(drawn: Optional[np.ndarray], rows: int, contexts: int) -> Tuple[np.ndarray, np.ndarray]:
    """The first of the training sentences drawn for each row; no context without any."""
    if drawn is None:
        return np.zeros(rows, dtype=np.int64), np.zeros(0, dtype=np.int64)
    found = drawn[:, :contexts]
    return (found >= 0).sum(axis=1), found[found >= 0]
