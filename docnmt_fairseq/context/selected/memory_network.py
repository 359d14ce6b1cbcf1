"""Context mechanism ``memory``: contextual associated memory network ([M] sec. 4)."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from docnmt_fairseq.batch.context_sentences import ContextRows, ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey, WithinSentences
from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged, Slots, attention_groups
from docnmt_fairseq.ca_layers.convolution import ContextAwareConvolution
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.selected.base import SelectedContext, SelectedOptions
from docnmt_fairseq.layers.attention import MultiHeadAttention
from docnmt_fairseq.layers.base import FeedForwardSubLayer
from docnmt_fairseq.layers.capture import SENTENCES, TOKENS, Observe, Weights, observer, scatter
from docnmt_fairseq.layers.precision import computing_type, gather_rows, without_autocast
from docnmt_fairseq.multisource.packed import lookup
from docnmt_fairseq.options import Choices, option
from docnmt_fairseq.recurrent.cells import StepOrder

COMBINATIONS = Choices(("concatenate", "parallel"))
MEMORY_SCOPES = Choices(("own", "document", "batch"))
QUERIES = Choices(("sub-layer", "attention"))
RNNS = {"gru": nn.GRU, "lstm": nn.LSTM}
CONTEXT_ENCODERS = Choices((*RNNS, "ca-cnn"))


@dataclass(frozen=True)
class AddressBlock:
    """Sets of tokens, padded together, with the sequences that each addresses."""

    sequences: Tensor  # [b, J] the sequences, padded by the last one
    absent: Tensor  # [b, J] True at padding
    tokens: Tensor  # [b, J, L] items of the sequences, padded by the last one
    padding: Tensor  # [b, J, L] True at padding


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of every token."""

    tokens: Ragged  # tokens in sentences
    sequences: Ragged  # the sequences, packed
    # [their items] token of each item, N for the break symbol; None: the sequences are all sentences in order
    items: Optional[Tensor]
    within_sequences: Optional[AttentionPlan]  # self-attention within sequences; None if no token has a memory
    sets: Ragged  # sets of sequences addressed by the same tokens
    set_members: Tensor  # [their sum] sequences of every set, one set after another
    set_of_query: Tensor  # [tokens with a memory] set that each token addresses, in ascending order of the tokens
    queries: Slots  # tokens that address each set, in the order of the blocks
    blocks: List[AddressBlock]  # the sets, padded together
    has_context: Tensor  # [N] True for tokens with a memory
    steps: Optional[StepOrder] = None  # order in which an RNN processes the sequences; None without an RNN

    def scatter(self, results: Tensor) -> Tensor:
        """Returns [N, d] from the results of tokens with a memory; zero elsewhere."""
        return results.new_zeros(self.tokens.total, results.size(1)).index_copy(0, self.queries.items, results)


@dataclass(frozen=True)
class MemoryKey(PlanKey[MemoryPlan]):
    """Memory of every token of a batch."""

    context: ContextSentences
    joined: bool  # whether a sentence's context sentences form one sequence with break symbols
    # one of ``MEMORY_SCOPES``: a token addresses the sequences of its own sentence, of all sentences of its document,
    # or of the batch
    scope: str
    attends: bool = True  # whether there is self-attention within sequences
    reads: bool = False  # whether an RNN processes the sequences

    def make(self, layout: DocumentLayout) -> MemoryPlan:
        contexts = layout.plan(self.context)
        items, sequences = None, layout.tokens
        of_row = np.split(contexts.sentences, contexts.first[1:])
        if self.joined:
            items, sequences = _join(layout.tokens, contexts)
            number = np.cumsum(contexts.counts > 0) - 1
            of_row = [number[row : row + 1] if count else number[:0] for row, count in enumerate(contexts.counts)]
        tokens, members = self._addressed(layout, of_row)
        kept = np.array([number for number, sequence in enumerate(members) if len(sequence)], dtype=np.int64)
        sets = Ragged(np.array([len(members[number]) for number in kept], dtype=np.int64), layout.device)
        set_members = np.concatenate([np.zeros(0, dtype=np.int64), *(members[number] for number in kept)])
        keys = np.array([sequences.lengths[members[number]].sum() for number in kept], dtype=np.int64)
        groups = attention_groups(tokens.lengths[kept], keys) if len(kept) else []
        has_context = np.zeros(layout.tokens.total, dtype=bool)
        has_context[tokens.items_of(kept)] = True
        within: Optional[AttentionPlan] = None
        if self.attends and len(kept):
            within = AttentionPlan(sequences, sequences) if self.joined else layout.plan(WithinSentences())
        return MemoryPlan(
            layout.tokens,
            sequences,
            None if items is None else layout.index(items),
            within,
            sets,
            layout.index(set_members),
            layout.index(np.repeat(np.arange(len(kept)), tokens.lengths[kept])),
            Slots(tokens, [kept[group] for group in groups]),
            [_block(sets, set_members, sequences, group) for group in groups],
            layout.index(has_context),
            StepOrder(sequences) if self.reads and len(kept) else None,
        )

    def _addressed(self, layout: DocumentLayout, of_row: List[np.ndarray]) -> Tuple[Ragged, List[np.ndarray]]:
        """Returns rows of tokens, and the sequences that each row addresses."""
        if self.scope == "own":
            return layout.tokens, of_row
        if self.scope == "document":
            parts = [of_row[start:end] for start, end in pairwise(layout.sentences.offsets)]
            return layout.document_tokens, [np.unique(np.concatenate(part)) for part in parts]
        return Ragged(np.array([layout.tokens.total]), layout.device), [np.unique(np.concatenate(of_row))]


def _block(sets: Ragged, set_members: np.ndarray, sequences: Ragged, group: np.ndarray) -> AddressBlock:
    """Returns some sets, padded together."""
    place, absent = sets.block(group)
    members = set_members[place]  # [b, J]
    length = sequences.lengths[members][..., None]
    column = np.arange(int(length.max()))
    tokens = sequences.offsets[members][..., None] + np.minimum(column, length - 1)
    return AddressBlock(*(sets.index(array) for array in (members, absent, tokens, column >= length)))


def _join(tokens: Ragged, contexts: ContextRows) -> Tuple[np.ndarray, Ragged]:
    """Returns items and rows of c = {c_1, break, c_2, break, …, c_m}, a row per sentence with context ([M] eq. 18)."""
    lengths = tokens.lengths[contexts.sentences] + 1  # each followed by a break
    ends = np.cumsum(lengths) - 1
    items = np.full(int(lengths.sum()), tokens.total)
    is_token = np.ones(len(items), dtype=bool)
    is_token[ends] = False
    items[is_token] = tokens.items_of(contexts.sentences)
    row_lengths = np.add.reduceat(lengths, contexts.first[contexts.rows]) if len(lengths) else lengths
    kept = np.ones(len(items), dtype=bool)
    kept[np.cumsum(row_lengths) - 1] = False  # no break after the last sentence
    return items[kept], Ragged(row_lengths - 1, tokens.device)


def associate(
    x: Tensor, memory: Tensor, plan: MemoryPlan, dropout: float = 0.0, observe: Optional[Observe] = None
) -> Tensor:
    """Returns a_i = Σ_j β_j Σ_k α_ijk c'_kj of tokens with a memory, [tokens of the plan, d] ([M] eq. 10-15).

    M_j = x' c'_jᵀ is not scaled, so half types lack precision and float16 lacks range: computed in float32 at least.
    α_ij = softmax_k M_j(i, k); β = softmax_j of the mean of M_j over the tokens i of x and k
    of c_j. That mean is the product of the two mean vectors, so padding cannot enter it.

    Args:
        x: x', [N, d].
        memory: c', [items of the sequences, d].
        observe: receives β and αβ.
    """
    dtype, outputs, seen = computing_type(x.dtype), [], []
    with without_autocast(x):
        x, memory, given = x.to(dtype), memory.to(dtype), x.dtype
        of_sentence = plan.tokens.mean(x).index_select(0, plan.tokens.item_row)  # [N, d]
        of_sequence = plan.sequences.mean(memory)
        x_blocks, mean_blocks = (plan.queries.split(y.index_select(0, plan.queries.index)) for y in (x, of_sentence))
        for block, x_block, mean_block in zip(plan.blocks, x_blocks, mean_blocks):
            c = lookup(memory, block.tokens)  # [b, J, L, d]
            scores = torch.einsum("bid,bjkd->bijk", x_block, c)
            alpha = scores.masked_fill(block.padding[:, None], -torch.inf).softmax(-1)
            likeness = torch.einsum("bid,bjd->bij", mean_block, lookup(of_sequence, block.sequences))
            beta = likeness.masked_fill(block.absent[:, None], -torch.inf).softmax(-1)
            weights = F.dropout(alpha * beta.unsqueeze(-1), dropout)  # [b, m, J, L]
            if observe is not None:
                seen.append((weights, beta))
            outputs.append((weights.flatten(2) @ c.flatten(1, 2)).flatten(0, 1))
    if observe is not None:
        observe_memory(observe, plan, seen)
    return torch.cat(outputs).index_select(0, plan.queries.slots).to(given)


def observe_memory(observe: Observe, plan: MemoryPlan, seen: List[Tuple[Tensor, Tensor]]) -> None:
    """Reports αβ over the tokens, with one more column for break symbols, and β if it is over sentences.

    Args:
        seen: αβ [b, m, J, L] and β [b, m, J] of every block.
    """
    tokens, sentences = plan.tokens.total, plan.tokens.rows
    of_tokens = seen[0][0].new_zeros(tokens, tokens + 1, 1)
    of_sentences = of_tokens.new_zeros(tokens, sentences, 1)
    queries = zip(plan.queries.split(plan.queries.index), plan.queries.paddings)
    for block, (query, padding), (weights, beta) in zip(plan.blocks, queries, seen):
        if padding is not None:
            weights, beta = (
                y.masked_fill(padding.view(*padding.shape, *[1] * (y.dim() - 2)), 0) for y in (weights, beta)
            )
        items = block.tokens if plan.items is None else plan.items[block.tokens]
        scatter(weights.flatten(2)[..., None], query, items.flatten(1), of_tokens)
        if plan.items is None:
            scatter(beta[..., None], query, block.sequences, of_sentences)
    observe(Weights("α·β", TOKENS, of_tokens))
    if plan.items is None:
        observe(Weights("β", SENTENCES, of_sentences))


@CONTEXT_MECHANISMS.register("memory")
class MemoryNetwork(SelectedContext):
    """H^context of [M] eq. 16.

    h_j = RNN(c_j) over the tokens as they entered the encoder, c'_j = MultiHead(h_j, h_j, h_j), x' the output of the
    encoder layer's self-attention, either of the sub-layer or of attention alone, as in eq. 5. Then :func:`associate`.
    A sentence is encoded once for all sentences that have it as context, unless several are joined into one sequence.

    Ablations ([M] table 3, sec. 6.2): without the RNN, c'_j = MultiHead(c_j, c_j, c_j). Without inter-sentence
    attention a_i is the same for all tokens: the mean of h_j over the tokens of c_j, averaged over the sequences. (The
    text uses "the hidden states after RNN" without saying how they are aligned with tokens.) Without both, the context
    is encoded by the source encoder (in the text, by one of the same architecture): the mean is that of x' of the
    context tokens.
    """

    @dataclass(frozen=True)
    class Options(SelectedOptions):
        """Options of the memory."""

        memory_combination: str = option(
            "concatenate", "several context sentences in memory: concatenate: one sequence with break symbols; "
            "parallel: separate sequences, weighted by similarity", names=COMBINATIONS,
        )  # fmt: skip
        memory_scope: str = option(
            "own", "context sentences that a token sees in memory: those of its own sentence, of all sentences of the "
            "document, or of the whole batch including other documents (in training only, otherwise own)",
            names=MEMORY_SCOPES,
        )  # fmt: skip
        memory_rnn: str = option(
            "gru", "encoder of context sentences in memory: an RNN, or a context-aware convolution",
            names=CONTEXT_ENCODERS,
        )  # fmt: skip
        memory_query: str = option(
            "sub-layer", "query of the memory: output of the self-attention sub-layer, or of attention alone, without "
            "residual connection and norm", names=QUERIES,
        )  # fmt: skip
        memory_without_rnn: bool = option(
            False, "memory uses embeddings of context sentences, without an RNN (ablation)"
        )
        memory_without_attention: bool = option(
            False, "memory uses the mean of each context sentence instead of attention to its tokens (ablation)"
        )

    placements = ("gated-feed-forward",)
    reads_embeddings = True

    def __init__(self, layer: LayerConfig, options: "MemoryNetwork.Options"):
        super().__init__(layer, options)
        d = layer.embed_dim
        joined = options.memory_combination == "concatenate" and self.contexts > 1
        attends = not options.memory_without_attention
        self.dropout = layer.dropout
        self.asks_attention = options.memory_query == "attention"
        self.rnn: Optional[nn.Module] = None
        if not options.memory_without_rnn:
            convolves = options.memory_rnn == "ca-cnn"
            self.rnn = ContextAwareConvolution(d, d, (3,)) if convolves else RNNS[options.memory_rnn](d, d)
        reads = isinstance(self.rnn, nn.RNNBase)
        self.key = MemoryKey(self.context_sentences, joined, options.memory_scope, attends, reads)
        self.context_attention = MultiHeadAttention(d, layer.heads, layer.dropout) if attends else None
        self.break_symbol = nn.Parameter(torch.randn(1, d)) if joined else None  # '####' of eq. 18
        self.feed_forward = FeedForwardSubLayer(layer)

    @classmethod
    def remarks(cls, options: "MemoryNetwork.Options") -> Iterator[str]:
        if options.memory_scope == "batch":
            yield "--memory-scope batch: applies in training only; otherwise the scope is a token's own sentence"

    def forward(self, x: Tensor, layout: DocumentLayout, *embeddings: Tensor) -> Tensor:
        plan = self.plan(layout)
        if not plan.blocks:
            return self.nothing(x)
        states = x if self.rnn is None and self.context_attention is None else embeddings[0]
        if self.break_symbol is not None:
            states = torch.cat([states, self.break_symbol.to(states.dtype)])
        if plan.items is not None:
            states = gather_rows(states, plan.items)  # [items of the sequences, d]
        states = self.encode(states, plan)
        if self.context_attention is None:
            a = plan.sets.mean(gather_rows(plan.sequences.mean(states), plan.set_members))
            a = torch.cat([gather_rows(a, plan.set_of_query), x[:0]])  # x takes part for its gradient: see zero_of
        else:
            assert plan.within_sequences is not None
            memory = self.context_attention.attend(states, states, plan.within_sequences)
            a = associate(x, memory, plan, self.dropout if self.training else 0.0, observer(self))
        return plan.scatter(self.feed_forward(a))

    def encode(self, states: Tensor, plan: MemoryPlan) -> Tensor:
        """Returns the hidden states of packed sequences, [items, d] ([M] eq. 7); without an encoder, the states."""
        if self.rnn is None:
            return states
        if isinstance(self.rnn, ContextAwareConvolution):
            return self.rnn.of_tokens(states, plan.sequences)
        assert plan.steps is not None
        step_by_step = PackedSequence(states.index_select(0, plan.steps.items), plan.steps.batch_sizes)
        return self.rnn(step_by_step)[0].data.index_select(0, plan.steps.places)

    @property
    def current_key(self) -> MemoryKey:
        """Key of the memory; other sentences of the batch are seen in training only."""
        own_only = self.key.scope == "batch" and not self.training
        return replace(self.key, scope="own") if own_only else self.key

    def plan(self, layout: DocumentLayout) -> MemoryPlan:
        """Returns the plan of the sequences of a batch."""
        return layout.plan(self.current_key)

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield from super().plans()
        yield self.current_key

    def has_context(self, layout: DocumentLayout) -> Optional[Tensor]:
        return self.plan(layout).has_context
