"""Context mechanism ``memory``: the contextual associated memory network ([M] sec. 4)."""

import logging
from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from docnmt_fairseq.layout import DocumentLayout, Ragged
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig
from docnmt_fairseq.modules.context_aware_layers.convolution import ContextAwareConvolution
from docnmt_fairseq.modules.context_selection import SelectedContext
from docnmt_fairseq.modules.feed_forward import FeedForward
from docnmt_fairseq.modules.memory_plan import MemoryPlan
from docnmt_fairseq.modules.multi_head import MultiHeadAttention
from docnmt_fairseq.modules.recording import SENTENCES, WORDS, Observe, Weights, observer, scatter

CONTEXT_RNNS = {"gru": nn.GRU, "lstm": nn.LSTM}
CONVOLUTION = "ca-cnn"  # in an RNN's place
CONTEXT_READERS = (*CONTEXT_RNNS, CONVOLUTION)

logger = logging.getLogger(__name__)


def mean_of_rows(x: Tensor, rows: Ragged) -> Tensor:
    """Returns the mean of every row's items, [rows, d] from packed [total, d]."""
    return rows.sum(x) / rows.lengths_tensor[:, None].to(x.dtype)


def context_reader(name: str, embed_dim: int) -> nn.Module:
    """Returns what reads context sentences, of ``CONTEXT_READERS``; the convolution is over three words."""
    if name == CONVOLUTION:
        return ContextAwareConvolution(embed_dim, embed_dim, (3,))
    return CONTEXT_RNNS[name](embed_dim, embed_dim, batch_first=True)


def associate(
    x: Tensor, memory: Tensor, plan: MemoryPlan, dropout: float = 0.0, observe: Optional[Observe] = None
) -> Tensor:
    """Returns a_i = Σ_j β_j Σ_k α_ijk c'_kj of the words that have a memory, [words of the plan, d] ([M] eq. 10-15).

    M_j = x' c'_jᵀ, unscaled; α_ij = softmax_k M_j(i, k); β = softmax_j of the mean of M_j over the words i of x and k
    of c_j. That mean is the product of the two mean vectors, so padding cannot enter it.

    Args:
        x: x', [N, d].
        memory: c', [items of the sequences, d].
        plan: who addresses what.
        dropout: probability of dropping a weight, 0 outside training.
        observe: who wants to see β and αβ.
    """
    of_sentence = mean_of_rows(x, plan.words).index_select(0, plan.words.item_row)  # [N, d]
    of_sequence = mean_of_rows(memory, plan.sequences)
    x_blocks, mean_blocks = (plan.queries.split(y.index_select(0, plan.queries.index)) for y in (x, of_sentence))
    outputs, seen = [], []
    for block, x_block, mean_block in zip(plan.blocks, x_blocks, mean_blocks):
        c = memory[block.words]  # [b, J, L, d]
        scores = torch.einsum("bid,bjkd->bijk", x_block, c)
        alpha = scores.masked_fill(block.padding[:, None], -torch.inf).softmax(-1)
        likeness = torch.einsum("bid,bjd->bij", mean_block, of_sequence[block.sequences])
        beta = likeness.masked_fill(block.absent[:, None], -torch.inf).softmax(-1)
        weights = F.dropout(alpha * beta.unsqueeze(-1), dropout)  # [b, m, J, L]
        if observe is not None:
            seen.append((weights, beta))
        outputs.append((weights.flatten(2) @ c.flatten(1, 2)).flatten(0, 1))
    if observe is not None:
        observe_memory(observe, plan, seen)
    return torch.cat(outputs).index_select(0, plan.queries.slots)


def observe_memory(observe: Observe, plan: MemoryPlan, seen: List[Tuple[Tensor, Tensor]]) -> None:
    """Reports αβ over the words, one column more for breaks between joined sentences, and β where it is of sentences.

    Args:
        observe: who wants to see them.
        plan: who addresses what.
        seen: αβ [b, m, J, L] and β [b, m, J] of every block.
    """
    words, sentences = plan.words.total, plan.words.rows
    of_words = seen[0][0].new_zeros(words, words + 1, 1)
    of_sentences = of_words.new_zeros(words, sentences, 1)
    queries = zip(plan.queries.split(plan.queries.index), plan.queries.paddings)
    for block, (query, padding), (weights, beta) in zip(plan.blocks, queries, seen):
        if padding is not None:
            weights, beta = (
                y.masked_fill(padding.view(*padding.shape, *[1] * (y.dim() - 2)), 0) for y in (weights, beta)
            )
        items = block.words if plan.items is None else plan.items[block.words]
        scatter(weights.flatten(2)[..., None], query, items.flatten(1), of_words)
        if plan.items is None:
            scatter(beta[..., None], query, block.sequences, of_sentences)
    observe(Weights("α·β", WORDS, of_words))
    if plan.items is None:
        observe(Weights("β", SENTENCES, of_sentences))


@CONTEXT_MECHANISMS.register("memory")
class MemoryNetwork(SelectedContext):
    """H^context of [M] eq. 16: what a word finds in its context sentences, after their side's feed-forward.

    h_j = RNN(c_j) over the words as they entered the encoder, c'_j = MultiHead(h_j, h_j, h_j), x' the output of the
    encoder layer's own self-attention, then :func:`associate`. A sentence is read once for all whose context it is,
    except where several are joined into one sequence.

    Ablations ([M] table 3, sec. 6.2): without the RNN, c'_j = MultiHead(c_j, c_j, c_j). Without inter-sentence
    attention a_i is the same for all words: the mean of h_j over the words of c_j, averaged over the sequences. (The
    text takes the context "by the hidden states after RNN", without saying how they meet words of another number.)
    Without both, the context goes through the encoder that the source goes through (in the text, one of the same
    build): the mean is that of x' of the context's words.
    """

    placements = ("gated-feed-forward",)
    reads_embeddings = True

    def __init__(self, config: ContextConfig):
        super().__init__(config)
        d, memory = config.embed_dim, config.memory
        self.joined = memory.combination == "concatenate" and self.contexts > 1
        self.scope = memory.scope
        self.dropout = config.dropout
        self.told = False
        self.rnn = None if memory.rnn is None else context_reader(memory.rnn, d)
        self.context_attention = MultiHeadAttention(d, config.heads, config.dropout) if memory.attention else None
        self.break_symbol = nn.Parameter(torch.randn(1, d)) if self.joined else None  # '####' of eq. 18
        self.feed_forward = FeedForward(config)

    def forward(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Returns [N, d]; see :class:`ContextMechanism`."""
        plan = self.plan(layout)
        if not plan.blocks:
            return self.nothing(x)
        states = x if self.rnn is None and self.context_attention is None else embeddings
        if self.break_symbol is not None:
            states = torch.cat([states, self.break_symbol.to(states.dtype)])
        if plan.items is not None:
            states = states.index_select(0, plan.items)  # [items of the sequences, d]
        if self.rnn is not None:
            states = self.read(states, plan.sequences)
        if self.context_attention is None:
            a = plan.sets.sum(mean_of_rows(states, plan.sequences)[plan.set_members])
            a = (a / plan.sets.lengths_tensor[:, None].to(a.dtype)).index_select(0, plan.set_of_query)
        else:
            memory = self.context_attention.attend(states, states, plan.within_sequences)
            a = associate(x, memory, plan, self.dropout if self.training else 0.0, observer(self))
        return plan.scatter(self.feed_forward(a))

    def read(self, states: Tensor, sequences: Ragged) -> Tensor:
        """Returns the RNN's hidden states of packed sequences, [items, d] ([M] eq. 7), or what a convolution gives."""
        if isinstance(self.rnn, ContextAwareConvolution):
            return self.rnn.of_words(states, sequences)
        lengths = torch.from_numpy(sequences.lengths)
        packed = pack_padded_sequence(sequences.pad(states), lengths, batch_first=True, enforce_sorted=False)
        return sequences.pack(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])

    def plan(self, layout: DocumentLayout) -> MemoryPlan:
        """Returns which sequences the batch has and who addresses them."""
        scope, contexts = self.scope, self.select(layout)
        if scope == "batch" and not self.training:
            scope = "own"
            if not self.told:
                self.told = True
                logger.warning("--memory-scope batch is for training: outside it, words see the context of their own")
        name = f"memory {self.contexts} {self.selection} {self.seed} {self.joined} {scope}"
        return layout.shared(name, lambda: MemoryPlan(layout, contexts, self.joined, scope))

    def reached(self, layout: DocumentLayout) -> Optional[Tensor]:
        """Returns [N]; see :class:`ContextMechanism`."""
        return self.plan(layout).reached
