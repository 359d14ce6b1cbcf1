"""Which sentences of its document a sentence has as context: the previous, the next, some at random, or similar ones.

([M] sec. 4.3, table 4; Voita et al. 2018, Miculicich et al. 2018: the previous ones. Similar by sentence vectors, which
[Z] sec. 4.1 uses to find texts.)
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layout import AttentionPlan, DocumentLayout, Ragged
from docnmt_fairseq.modules.context import ContextConfig, ContextMechanism


def items_of(rows: Ragged, numbers: np.ndarray) -> np.ndarray:
    """Returns the item numbers of the given rows, one row after another, [their items in all]."""
    lengths = rows.lengths[numbers]
    before = np.cumsum(lengths) - lengths
    return np.repeat(rows.offsets[numbers] - before, lengths) + np.arange(int(lengths.sum()))


@dataclass(frozen=True)
class ContextSentences:
    """The context of every sentence, in the document's order.

    Attributes:
        words: of the sentences.
        counts: [R] how many context sentences each row has; 0 where there is none, as at a document's start.
        sentences: [P] their rows, those of row 0 first.
    """

    words: Ragged
    counts: np.ndarray
    sentences: np.ndarray

    @classmethod
    def select(cls, layout: DocumentLayout, contexts: int, selection: str, seed: int = 1) -> "ContextSentences":
        """Returns the context of every row, made at its first use in a batch.

        Args:
            layout: the batch.
            contexts: N, how many sentences at most, those nearest for ``previous`` and ``next``.
            selection: of ``CONTEXT_SELECTIONS``; ``random`` draws from the document's other sentences, from the
                seed and the lengths of the document's sentences alone: the same choice in whatever batch, in training
                and after; ``similar`` takes the most similar of the earlier sentences that are in the batch.
            seed: of the random choice.

        Raises:
            InputError: the batch does not say which sentences are similar, or says it of fewer.
        """

        def make() -> "ContextSentences":
            if selection == "random":
                return cls(layout.words, *_at_random(layout.sentences, layout.words.lengths, contexts, seed))
            if selection == "similar":
                return cls(layout.words, *_most_similar(layout.sentences, layout.similar, contexts))
            return cls(layout.words, *_neighbours(layout.sentences, contexts, following=selection == "next"))

        return layout.shared(f"contexts {contexts} {selection} {seed}", make)

    @property
    def rows(self) -> np.ndarray:
        """Returns the rows that have context, ascending."""
        return np.flatnonzero(self.counts)

    @property
    def first(self) -> np.ndarray:
        """Returns where each row's context begins in ``sentences``, [R]."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def reached(self) -> Tensor:
        """Returns which words have context, [N]."""
        return torch.as_tensor(self.counts > 0, device=self.words.device).index_select(0, self.words.item_row)

    @cached_property
    def to_words(self) -> "GatheredPlan":
        """Returns the plan of words attending to all words of their context sentences together."""
        keys = np.add.reduceat(self.words.lengths[self.sentences], self.first[self.rows])
        return GatheredPlan.make(self.words, self.rows, items_of(self.words, self.sentences), keys)

    @cached_property
    def to_each_sentence(self) -> "GatheredPlan":
        """Returns the plan of words attending to the words of each context sentence by itself.

        Its queries, M in all, are the words of row 0 for its first context sentence, for its second, …, of row 1, ….
        """
        words, rows = self.words, np.repeat(np.arange(len(self.counts)), self.counts)
        return GatheredPlan.make(words, rows, items_of(words, self.sentences), words.lengths[self.sentences])

    @property
    def row_of_result(self) -> Tensor:
        """Returns the sentence that each query of :attr:`to_each_sentence` looks into, [M]."""
        rows = np.repeat(np.arange(len(self.counts)), self.counts)
        return torch.as_tensor(np.repeat(self.sentences, self.words.lengths[rows]), device=self.words.device)

    @cached_property
    def over_sentences(self) -> "GatheredPlan":
        """Returns the plan of words attending to what :attr:`to_each_sentence` gave them, one result a sentence."""
        device, counts = self.words.device, np.repeat(self.counts, self.words.lengths)
        queries = np.flatnonzero(counts)
        of_word = items_of(self.words, np.repeat(np.arange(len(self.counts)), self.counts))
        keys = np.argsort(of_word, kind="stable")
        plan = AttentionPlan(Ragged(np.ones_like(queries), device), Ragged(counts[queries], device))
        return GatheredPlan(*(torch.as_tensor(items, device=device) for items in (queries, keys)), plan)


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
    def make(cls, words: Ragged, rows: np.ndarray, keys: np.ndarray, key_lengths: np.ndarray) -> "GatheredPlan":
        """Returns the plan in which the words of ``rows[i]`` see the next ``key_lengths[i]`` of the words ``keys``."""
        queries = Ragged(words.lengths[rows], words.device)
        index = (torch.as_tensor(items, device=words.device) for items in (items_of(words, rows), keys))
        return cls(*index, AttentionPlan(queries, Ragged(key_lengths, words.device)))

    @property
    def gather(self) -> Tuple[Tensor, Tensor]:
        """Returns the numbers of the states, of queries and of keys."""
        return self.queries, self.keys

    def scatter(self, results: Tensor, states: int) -> Tensor:
        """Returns [states, ...] with each query's result at its state, and zero elsewhere; no state is two queries."""
        return results.new_zeros(states, *results.shape[1:]).index_copy(0, self.queries, results)


class SelectedContext(ContextMechanism):
    """What mechanisms with selected context sentences have in common.

    Class attributes:
        default_contexts: N where the option leaves it open.
    """

    top_layer_only = True
    default_contexts = 1

    def __init__(self, config: ContextConfig):
        super().__init__()
        self.contexts = config.memory.contexts or self.default_contexts
        self.selection = config.memory.selection
        self.seed = config.memory.seed

    @property
    def similar_contexts(self) -> int:
        """Returns how many similar sentences the batch must know of each, see :func:`similar_contexts`."""
        return self.contexts if self.selection == "similar" else 0

    def select(self, layout: DocumentLayout) -> ContextSentences:
        """Returns the context of every row."""
        return ContextSentences.select(layout, self.contexts, self.selection, self.seed)

    def reached(self, layout: DocumentLayout) -> Optional[Tensor]:
        """Returns [N]; see :class:`ContextMechanism`."""
        return self.select(layout).reached

    def nothing(self, x: Tensor) -> Tensor:
        """Returns zeros [N, d] for a batch in which no word has context; see :func:`zero_of`."""
        return 0 * x + zero_of(self)


def zero_of(module: nn.Module) -> Tensor:
    """Returns 0 of a module that a batch has no use for.

    Every parameter takes part, with a gradient of zero: processes that train together exchange the same gradients. As
    the sum of no element: 0 times that of all is no number where half precision has no place for the sum of a table.
    """
    return sum(parameter.flatten()[:0].sum() for parameter in module.parameters())


def similar_contexts(model: nn.Module) -> int:
    """Returns how many similar sentences of each a model wants to know at most; its parts say so by this name."""
    return max(getattr(module, "similar_contexts", 0) for module in model.modules())


def _neighbours(documents: Ragged, contexts: int, following: bool) -> Tuple[np.ndarray, np.ndarray]:
    """Returns counts [R] and sentences [P]: the nearest before, or following, each row."""
    row = np.arange(documents.total)
    document = np.repeat(np.arange(documents.rows), documents.lengths)
    place = row - documents.offsets[document]
    available = documents.lengths[document] - 1 - place if following else place
    counts = np.minimum(available, contexts)
    first = row + 1 if following else row - counts
    before = np.cumsum(counts) - counts
    return counts, np.repeat(first - before, counts) + np.arange(int(counts.sum()))


def _at_random(documents: Ragged, word_lengths: np.ndarray, contexts: int, seed: int) -> Tuple[np.ndarray, np.ndarray]:
    """Returns counts [R] and sentences [P]: others of the same document, without repetition, in its order."""
    counts, chosen = [], [np.zeros(0, dtype=np.int64)]
    for start, length in zip(documents.offsets, documents.lengths):
        count = min(contexts, int(length) - 1)
        counts.append(np.full(length, count))
        # The lengths tell documents apart, wherever they stand: no number of theirs depends on the batch.
        draw = np.random.default_rng([seed, *word_lengths[start : start + length]]).random((length, length))
        np.fill_diagonal(draw, np.inf)
        chosen.append((start + np.sort(np.argsort(draw, axis=1)[:, :count], axis=1)).ravel())
    return np.concatenate(counts), np.concatenate(chosen)


def _most_similar(documents: Ragged, back: Optional[np.ndarray], contexts: int) -> Tuple[np.ndarray, np.ndarray]:
    """Returns counts [R] and sentences [P]: those that stand ``back`` [R, K], without what is before the document."""
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
