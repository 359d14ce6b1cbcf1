"""How far the selection is from where attention goes; see ``selection_loss`` for what it is good for.

    p_i(s) = Σ_{w ∈ s} softmax_w(q_i k_wᵀ/√d_k + R_i,sentence(w))       how much token i attends to sentence s
    L      = Σ_i mean over heads of KL(p_i ‖ softmax_s(R_i,s / τ))

p is a constant: gradients reach relevance R alone, and the caller gives queries and keys of relevance through which
they reach the selection's own projections and the sentence encoder, never the states. With τ = 1 the target p ∝ m e^R
(m: the mass that tokens' own scores give) would move along with R, which then runs away; with τ = ½ the loss is least
where R = log m, and m orders sentences just as p does there.

Tokens are gone through in chunks, and the gradient is written down in closed form on the way: neither scores of tokens
for tokens nor R of all tokens and heads is held.
"""

import math
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.attention_plans import AttentionBlock, AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast

CHUNK = 2**19  # scores of tokens for tokens held at a time on a CPU


@dataclass(frozen=True)
class SelectablePlan:
    """The documents of which something is left out.

    Attributes:
        sentences: their tokens beside their sentences.
        positions: [b, w] of each block, the place of every token's sentence in its document.
        real: [b, w] of each block, which tokens are no padding.
        tokens: how many there are.
    """

    sentences: AttentionPlan
    positions: List[Tensor]
    real: List[Tensor]
    tokens: int


@dataclass(frozen=True)
class Selectable(PlanKey[SelectablePlan]):
    """The documents whose tokens select; ``selection`` says which these are."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> SelectablePlan:
        """See :class:`PlanKey`."""
        tokens, documents = layout.document_tokens, layout.plan(self.selection).documents
        plan = AttentionPlan(tokens, layout.sentences, rows=documents)
        sentence = np.repeat(np.arange(layout.tokens.rows), layout.tokens.lengths)
        positions, real = [], []
        for rows in plan.groups:
            index, padding = tokens.block(rows)
            positions.append(layout.index(sentence[index] - layout.sentences.offsets[rows][:, None]))
            real.append(layout.index(~padding))
        return SelectablePlan(plan, positions, real, int(tokens.lengths[documents].sum()))


def selection_divergence(
    q: Tensor,
    k: Tensor,
    q_s: Tensor,
    k_s: Tensor,
    plan: SelectablePlan,
    top_t: int,
    temperature: float = 0.5,
    selection: Optional[Selection] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Sums over the plan's tokens, scalars: L, the mass p on the ``top_t`` largest R, and that on its own largest.

    Args:
        q, k: [N, H, d_k] packed token states; no gradient reaches them.
        q_s: [N, H, d_k] queries of relevance.
        k_s: [R, H, d_k] keys of relevance.
        plan: the documents whose tokens count.
        top_t: how many sentences are to be selected.
        temperature: τ.
        selection: what some of these tokens keep already: p and the prediction are over that alone; the others, and
            all where it is None, keep everything.
    """
    kept = None
    if selection is not None:
        kept = selection.sentence.new_full((len(q), *selection.sentence.shape[1:]), -1)
        kept = kept.index_copy(0, selection.items, selection.sentence)
    setting = _Setting(plan, top_t, temperature, kept)
    sums: Tuple[Tensor, Tensor, Tensor] = _Divergence.apply(q.detach(), k.detach(), q_s, k_s, setting)
    return sums


@dataclass(frozen=True)
class _Setting:
    """What has no gradient; see :func:`selection_divergence`. ``kept``: as :class:`_Block` has it."""

    plan: SelectablePlan
    top_t: int
    temperature: float
    kept: Optional[Tensor]


class _Divergence(torch.autograd.Function):
    """See :func:`selection_divergence`."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, q_s: Tensor, k_s: Tensor, setting: _Setting
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """The sums."""
        plan, temperature = setting.plan, setting.temperature
        dtype, heads = computing_type(q.dtype), q.size(1)
        needed = any(ctx.needs_input_grad)
        of_q, of_k = (x.new_zeros(x.shape if needed else (0,), dtype=dtype) for x in (q_s, k_s))
        sums = q.new_zeros(3, dtype=torch.float64)
        with without_autocast(q):
            for places in zip(plan.sentences.blocks, plan.positions, plan.real):
                block = _Block(q, k, q_s, k_s, setting.kept, *places)
                for some, counted in block.chunks():
                    relevance, target = block.relevance_and_mass(some)
                    predicted = (relevance / temperature).log_softmax(-1)
                    divergence = torch.special.xlogy(target, target) - target * predicted.masked_fill(target == 0, 0)
                    t = min(setting.top_t, relevance.size(-1))
                    sums[0] += (divergence * counted).sum()
                    sums[1] += (target.gather(-1, relevance.topk(t, -1).indices) * counted).sum()
                    sums[2] += (target.topk(t, -1).values * counted).sum()
                    if needed:
                        of_relevance = (predicted.exp() - target) * counted / (temperature * heads)
                        block.add_gradients(of_relevance, some, of_q, of_k)
        ctx.save_for_backward(of_q, of_k)
        ctx.types = q_s.dtype, k_s.dtype
        loss, mass, largest = (sums / heads).to(dtype)
        ctx.mark_non_differentiable(mass, largest)
        return loss, mass, largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, *_: Tensor) -> Tuple[Optional[Tensor], ...]:
        """The gradients of q_s and k_s."""
        of_q, of_k = ((of_loss * x).to(dtype) for x, dtype in zip(ctx.saved_tensors, ctx.types))
        return None, None, of_q, of_k, None


class _Block:
    """Documents padded together.

    Args:
        q, k, q_s, k_s: see :func:`selection_divergence`.
        kept: [N, H, t] rows of the sentences that tokens keep, −1: none; nothing but −1, or None: all.
        block: their tokens and sentences.
        position: [b, w] see :class:`SelectablePlan`.
        real: [b, w] see :class:`SelectablePlan`.
    """

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        q_s: Tensor,
        k_s: Tensor,
        kept: Optional[Tensor],
        block: AttentionBlock,
        position: Tensor,
        real: Tensor,
    ):
        self.q, self.q_s, self.kept, self.block, self.real = q, q_s, kept, block, real
        self.scale = 1 / math.sqrt(q.size(-1))
        self.keys = self.rows(k, block.query).transpose(2, 3)  # [b, H, d, w]
        self.sentence_keys = self.rows(k_s, block.key)  # [b, H, n, d]
        self.sentence = position[:, None, None, :]
        in_sentence = F.one_hot(position, block.key.size(1)) * real[..., None]
        self.in_sentence = in_sentence[:, None].to(self.keys.dtype)  # [b, 1, w, n]

    @staticmethod
    def rows(x: Tensor, index: Tensor) -> Tensor:
        """[b, H, c, d], float32 at least, of packed x [·, H, d] by numbers [b, c]."""
        chosen = x.index_select(0, index.flatten()).to(computing_type(x.dtype))
        return chosen.unflatten(0, index.shape).transpose(1, 2)

    def chunks(self) -> Iterator[Tuple[Tensor, Tensor]]:
        """Numbers [b, c] of some tokens of every document, and which are real, [b, 1, c, 1]."""
        rows, width = self.block.query.shape
        size = max(1, chunk_elements(self.q.device, CHUNK) // (rows * self.q.size(1) * width))
        for some, real in zip(self.block.query.split(size, dim=1), self.real.split(size, dim=1)):
            yield some, real[:, None, :, None]

    def relevance_and_mass(self, some: Tensor) -> Tuple[Tensor, Tensor]:
        """R of the sentences that are kept, −∞ elsewhere, and p; [b, H, c, n] both."""
        relevance = (self.rows(self.q_s, some) * self.scale) @ self.sentence_keys.transpose(2, 3)
        if self.block.key_padding is not None:
            relevance = relevance.masked_fill(self.block.key_padding[:, None, None, :], -torch.inf)
        if self.kept is not None:
            relevance = relevance.masked_fill(~self._kept(some, relevance), -torch.inf)
        scores = (self.rows(self.q, some) * self.scale) @ self.keys  # [b, H, c, w]
        scores = scores + relevance.gather(3, self.sentence.expand_as(scores))
        mass = (scores - scores.amax(-1, keepdim=True)).exp_() @ self.in_sentence  # [b, H, c, n]; padding gives none
        return relevance, mass / mass.sum(-1, keepdim=True)

    def _kept(self, some: Tensor, relevance: Tensor) -> Tensor:
        """Which sentences tokens keep, [b, H, c, n]."""
        assert self.kept is not None
        n = relevance.size(-1)
        row = self.kept.index_select(0, some.flatten()).unflatten(0, some.shape).transpose(1, 2)  # [b, H, c, t]
        place = torch.where(row < 0, n, row - self.block.key[:, :1, None, None])
        chosen = torch.zeros(*relevance.shape[:-1], n + 1, dtype=torch.bool, device=place.device)
        return chosen.scatter_(-1, place, True)[..., :n] | (row < 0).all(-1, keepdim=True)

    def add_gradients(self, of_relevance: Tensor, some: Tensor, of_q: Tensor, of_k: Tensor) -> None:
        """Adds the gradients of q_s and k_s that follow from R's [b, H, c, n], which is 0 at padding."""
        of_relevance = of_relevance * self.scale
        queries = (of_relevance @ self.sentence_keys).transpose(1, 2).flatten(0, 1)
        of_q.index_add_(0, some.flatten(), queries)
        keys = (of_relevance.transpose(2, 3) @ self.rows(self.q_s, some)).transpose(1, 2).flatten(0, 1)
        of_k.index_add_(0, self.block.key.flatten(), keys)
