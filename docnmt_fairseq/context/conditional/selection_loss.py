"""Selection loss: trains the selection to predict where attention goes. Ours, not the paper's.

Hard selection passes a gradient to R of the selected sentences only: a relevant sentence that is not selected is never
learnt. While all sentences are kept, attention itself shows which of them matter, and the selection learns this:

    p_i(s) = Σ_{w ∈ s} softmax_w(q_i k_wᵀ/√d_k + R_i,sentence(w))       attention of token i to sentence s
    L      = Σ_i mean over heads of KL(p_i ‖ softmax_s(R_i,s / τ))

p is a constant: gradients reach R only, and through it the projections of the selection and the sentence encoder, never
the states. With τ = 1 the target p ∝ m e^R (m: the mass from the tokens' own scores) would move along with R, which
then diverges; with τ = ½ the loss is smallest at R = log m, where m ranks sentences as p does.

Tokens are processed in chunks with the gradient in closed form, so neither token-to-token scores nor R of all tokens
and heads are held.
"""

import math
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionBlock, AttentionPlan
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey, TopT, TopTSchedule
from docnmt_fairseq.layers.auxiliary_losses import AuxiliaryLoss, HandIn
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast
from docnmt_fairseq.options import Choices, option

PHASES = Choices(("dense", "window", "always"))
SELECTED_MASS = "selected_mass"  # in the log
CHUNK = 2**19  # token-to-token scores held at a time on a CPU


@dataclass(frozen=True)
class SelectionLossOptions:
    """Options of the selection loss."""

    selection_loss: float = option(
        0.0, "weight of the loss that trains the selection to predict where attention goes; 0: none, as in [T]; "
        "presets that select: 1", minimum=0,
    )  # fmt: skip
    selection_loss_phase: str = option(
        "dense", "when the loss is active: dense: in all updates before annealing begins; window: in the last of "
        "these; always: after it, too", names=PHASES,
    )  # fmt: skip
    selection_loss_updates: int = option(150, "number of updates of the window", minimum=1)
    selection_loss_temperature: float = option(0.5, "τ of the prediction softmax(R/τ)", minimum=0.01)


class SelectionLoss:
    """Selection loss of one layer.

    Class attributes:
        names: names of the values that it hands in.
    """

    names = ("selection_loss", SELECTED_MASS)

    def __init__(self, options: SelectionLossOptions, schedule: TopTSchedule):
        self.weight = options.selection_loss
        self.phase = options.selection_loss_phase
        self.updates = options.selection_loss_updates
        self.temperature = options.selection_loss_temperature
        self.schedule = schedule

    def active(self, training: bool) -> bool:
        """Returns whether the loss is needed at this point of the schedule; validation always logs it."""
        schedule = self.schedule
        if schedule.top_t == 0 or (self.weight == 0 and schedule.anneal_threshold == 0):
            return False
        if not training or self.phase == "always":
            return True
        in_phase = self.phase == "dense" or schedule.update >= schedule.anneal_start - self.updates
        return schedule.before_annealing() and in_phase

    @property
    def selection_key(self) -> SelectionKey:
        """Key of the tokens that the loss covers: those that select, or will."""
        return TopT(self.schedule.top_t)

    def hand_in(
        self,
        into: HandIn,
        q: Tensor,
        k: Tensor,
        q_s: Tensor,
        k_s: Tensor,
        layout: DocumentLayout,
        selection: Optional[Selection],
    ) -> None:
        """Hands in the loss, and the mass on the t highest R as a share of the largest possible mass.

        Args:
            q, k: [N, H, d_k] queries and keys of tokens.
            q_s, k_s: [N, H, d_k] and [R, H, d_k] queries and keys of relevance; gradients reach these.
            selection: current selection; None: every sentence is kept.
        """
        plan, top_t = layout.plan(DivergenceTokens(self.selection_key)), self.schedule.top_t
        loss, mass, largest = selection_divergence(q, k, q_s, k_s, plan, top_t, self.temperature, selection)
        into(AuxiliaryLoss(self.names[0], loss, plan.tokens, self.weight))
        into(AuxiliaryLoss(SELECTED_MASS, mass, largest))


@dataclass(frozen=True)
class DivergencePlan:
    """Documents with more than t sentences."""

    sentences: AttentionPlan  # plan of their tokens over their sentences
    positions: List[Tensor]  # [b, w] of each block, index of every token's sentence in its document
    real: List[Tensor]  # [b, w] of each block, False at padding
    tokens: int  # number of tokens


@dataclass(frozen=True)
class DivergenceTokens(PlanKey[DivergencePlan]):
    """Documents whose tokens select according to ``selection``."""

    selection: SelectionKey

    def make(self, layout: DocumentLayout) -> DivergencePlan:
        tokens, documents = layout.document_tokens, layout.plan(self.selection).documents
        plan = AttentionPlan(tokens, layout.sentences, rows=documents)
        sentence = np.repeat(np.arange(layout.tokens.rows), layout.tokens.lengths)
        positions, real = [], []
        for rows in plan.groups:
            index, padding = tokens.block(rows)
            positions.append(layout.index(sentence[index] - layout.sentences.offsets[rows][:, None]))
            real.append(layout.index(~padding))
        return DivergencePlan(plan, positions, real, int(tokens.lengths[documents].sum()))


def selection_divergence(
    q: Tensor,
    k: Tensor,
    q_s: Tensor,
    k_s: Tensor,
    plan: DivergencePlan,
    top_t: int,
    temperature: float = 0.5,
    selection: Optional[Selection] = None,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Returns sums over the plan's tokens: L, the mass p on the ``top_t`` largest R, and on the ``top_t`` largest p.

    Args:
        q, k: [N, H, d_k] packed token states; no gradient reaches them.
        q_s: [N, H, d_k] queries of relevance.
        k_s: [R, H, d_k] keys of relevance.
        plan: the documents.
        top_t: number of sentences to be selected.
        temperature: τ.
        selection: sentences that some of these tokens keep already: p and the prediction are then over those only;
            other tokens, and all without a selection, keep everything.
    """
    kept = None
    if selection is not None:
        kept = selection.sentence.new_full((len(q), *selection.sentence.shape[1:]), -1)
        kept = kept.index_copy(0, selection.items, selection.sentence)
    inputs = (q.detach(), k.detach(), q_s, k_s)
    sums: Tuple[Tensor, Tensor, Tensor] = _Divergence.apply(*inputs, plan, top_t, temperature, kept)
    return sums


class _Divergence(torch.autograd.Function):
    """Autograd function of :func:`selection_divergence`."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        q_s: Tensor,
        k_s: Tensor,
        plan: DivergencePlan,
        top_t: int,
        temperature: float,
        kept: Optional[Tensor],
    ) -> Tuple[Tensor, Tensor, Tensor]:
        """Returns the sums; computes the gradients on the way."""
        dtype, heads = computing_type(q.dtype), q.size(1)
        needed = any(ctx.needs_input_grad)
        grad_q, grad_k = (x.new_zeros(x.shape if needed else (0,), dtype=dtype) for x in (q_s, k_s))
        sums = q.new_zeros(3, dtype=torch.float64)
        with without_autocast(q):
            for block_plan in zip(plan.sentences.blocks, plan.positions, plan.real):
                block = _Block(q, k, q_s, k_s, kept, *block_plan)
                for tokens, real in block.chunks():
                    relevance, target = block.relevance_and_mass(tokens)
                    predicted = (relevance / temperature).log_softmax(-1)
                    divergence = torch.special.xlogy(target, target) - target * predicted.masked_fill(target == 0, 0)
                    t = min(top_t, relevance.size(-1))
                    sums[0] += (divergence * real).sum()
                    sums[1] += (target.gather(-1, relevance.topk(t, -1).indices) * real).sum()
                    sums[2] += (target.topk(t, -1).values * real).sum()
                    if needed:
                        grad_relevance = (predicted.exp() - target) * real / (temperature * heads)
                        block.add_gradients(grad_relevance, tokens, grad_q, grad_k)
        ctx.save_for_backward(grad_q, grad_k)
        ctx.types = q_s.dtype, k_s.dtype
        loss, mass, largest = (sums / heads).to(dtype)
        ctx.mark_non_differentiable(mass, largest)
        return loss, mass, largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, *_: Tensor) -> Tuple[Optional[Tensor], ...]:
        """Returns the gradients of q_s and k_s."""
        grad_q, grad_k = ((grad_loss * x).to(dtype) for x, dtype in zip(ctx.saved_tensors, ctx.types))
        return None, None, grad_q, grad_k, None, None, None, None


class _Block:
    """Documents padded together.

    Args:
        q, k, q_s, k_s: see :func:`selection_divergence`.
        kept: [N, H, t] rows of the sentences that tokens keep, −1: none; only −1 for a token, or None: all.
        position, real: [b, w] see :class:`DivergencePlan`.
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
        """Returns [b, H, c, d], float32 at least, of packed x [·, H, d] at indices [b, c]."""
        rows = x.index_select(0, index.flatten()).to(computing_type(x.dtype))
        return rows.unflatten(0, index.shape).transpose(1, 2)

    def chunks(self) -> Iterator[Tuple[Tensor, Tensor]]:
        """Yields indices [b, c] of some tokens of every document, and whether they are real, [b, 1, c, 1]."""
        rows, width = self.block.query.shape
        size = max(1, chunk_elements(self.q.device, CHUNK) // (rows * self.q.size(1) * width))
        for tokens, real in zip(self.block.query.split(size, dim=1), self.real.split(size, dim=1)):
            yield tokens, real[:, None, :, None]

    def relevance_and_mass(self, tokens: Tensor) -> Tuple[Tensor, Tensor]:
        """Returns R of the kept sentences, −∞ elsewhere, and p; [b, H, c, n] both."""
        relevance = (self.rows(self.q_s, tokens) * self.scale) @ self.sentence_keys.transpose(2, 3)
        if self.block.key_padding is not None:
            relevance = relevance.masked_fill(self.block.key_padding[:, None, None, :], -torch.inf)
        if self.kept is not None:
            relevance = relevance.masked_fill(~self._is_kept(self.kept, tokens, relevance), -torch.inf)
        scores = (self.rows(self.q, tokens) * self.scale) @ self.keys  # [b, H, c, w]
        scores = scores + relevance.gather(3, self.sentence.expand_as(scores))
        mass = (scores - scores.amax(-1, keepdim=True)).exp_() @ self.in_sentence  # [b, H, c, n]; padding adds none
        return relevance, mass / mass.sum(-1, keepdim=True)

    def _is_kept(self, kept: Tensor, tokens: Tensor, relevance: Tensor) -> Tensor:
        """Returns a mask [b, H, c, n] of the sentences that tokens keep."""
        n = relevance.size(-1)
        row = kept.index_select(0, tokens.flatten()).unflatten(0, tokens.shape).transpose(1, 2)  # [b, H, c, t]
        place = torch.where(row < 0, n, row - self.block.key[:, :1, None, None])
        mask = torch.zeros(*relevance.shape[:-1], n + 1, dtype=torch.bool, device=place.device)
        return mask.scatter_(-1, place, True)[..., :n] | (row < 0).all(-1, keepdim=True)

    def add_gradients(self, grad_relevance: Tensor, tokens: Tensor, grad_q: Tensor, grad_k: Tensor) -> None:
        """Adds the gradients of q_s and k_s that follow from that of R [b, H, c, n], which is 0 at padding."""
        grad_relevance = grad_relevance * self.scale
        queries = (grad_relevance @ self.sentence_keys).transpose(1, 2).flatten(0, 1)
        grad_q.index_add_(0, tokens.flatten(), queries)
        keys = (grad_relevance.transpose(2, 3) @ self.rows(self.q_s, tokens)).transpose(1, 2).flatten(0, 1)
        grad_k.index_add_(0, self.block.key.flatten(), keys)
