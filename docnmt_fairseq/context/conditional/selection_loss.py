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
from typing import Any, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import AttentionPlan
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey
from docnmt_fairseq.layers.precision import chunk_elements, computing_type, without_autocast
from docnmt_fairseq.options import Choices, option

PHASES = Choices(("dense", "window", "always"))
SELECTION_LOSS = "selection_loss"  # in the log
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
    heads, scale, kept = q.size(1), 1 / math.sqrt(q.size(-1)), None
    if selection is not None:
        kept = selection.sentence.new_full((len(q), *selection.sentence.shape[1:]), -1)
        kept = kept.index_copy(0, selection.items, selection.sentence)
    needed = torch.is_grad_enabled() and (q_s.requires_grad or k_s.requires_grad)
    dtype = computing_type(q.dtype)
    grad_q, grad_k = (x.new_zeros(x.shape if needed else (0,), dtype=dtype) for x in (q_s, k_s))
    sums = q.new_zeros(3, dtype=torch.float64)
    with torch.no_grad(), without_autocast(q):
        for block, position, is_real in zip(plan.sentences.blocks, plan.positions, plan.real):
            keys = _rows(k, block.query).transpose(2, 3)  # [b, H, d, w]
            sentence_keys = _rows(k_s, block.key)  # [b, H, n, d]
            in_sentence = (F.one_hot(position, block.key.size(1)) * is_real[..., None])[:, None].to(dtype)  # [b,1,w,n]
            size = max(1, chunk_elements(q.device, CHUNK) // (block.query.numel() * heads))
            for tokens, real in zip(block.query.split(size, dim=1), is_real.split(size, dim=1)):  # [b, c]
                queries, real = _rows(q_s, tokens), real[:, None, :, None]
                relevance = (queries * scale) @ sentence_keys.transpose(2, 3)  # [b, H, c, n]
                if block.key_padding is not None:
                    relevance = relevance.masked_fill(block.key_padding[:, None, None, :], -torch.inf)
                if kept is not None:
                    hidden = _is_dropped(kept, tokens, block.key[:, :1, None, None], relevance)
                    relevance = relevance.masked_fill(hidden, -torch.inf)
                scores = (_rows(q, tokens) * scale) @ keys  # [b, H, c, w]
                scores = scores + relevance.gather(3, position[:, None, None, :].expand_as(scores))
                mass = (scores - scores.amax(-1, keepdim=True)).exp_() @ in_sentence  # [b, H, c, n]; padding adds none
                target = mass / mass.sum(-1, keepdim=True)  # p
                predicted = (relevance / temperature).log_softmax(-1)
                divergence = torch.special.xlogy(target, target) - target * predicted.masked_fill(target == 0, 0)
                t = min(top_t, relevance.size(-1))
                sums[0] += (divergence * real).sum()
                sums[1] += (target.gather(-1, relevance.topk(t, -1).indices) * real).sum()
                sums[2] += (target.topk(t, -1).values * real).sum()
                if needed:  # the gradient of R is 0 at padding
                    of_relevance = (predicted.exp() - target) * real / (temperature * heads) * scale
                    of_queries = (of_relevance @ sentence_keys).transpose(1, 2).flatten(0, 1)
                    grad_q.index_add_(0, tokens.flatten(), of_queries)
                    of_keys = (of_relevance.transpose(2, 3) @ queries).transpose(1, 2).flatten(0, 1)
                    grad_k.index_add_(0, block.key.flatten(), of_keys)
    loss, mass, largest = (sums / heads).to(dtype)
    return _WithGradients.apply(loss, q_s, k_s, grad_q, grad_k) if needed else loss, mass, largest


def _rows(x: Tensor, index: Tensor) -> Tensor:
    """Returns [b, H, c, d], float32 at least, of packed x [·, H, d] at indices [b, c]."""
    rows = x.index_select(0, index.flatten()).to(computing_type(x.dtype))
    return rows.unflatten(0, index.shape).transpose(1, 2)


def _is_dropped(kept: Tensor, tokens: Tensor, first: Tensor, relevance: Tensor) -> Tensor:
    """Returns a mask [b, H, c, n] of the sentences that tokens [b, c] do not keep.

    Args:
        kept: [N, H, t] rows of the sentences that a token keeps, −1: none; only −1: all.
        first: [b, 1, 1, 1] first sentence of each document.
    """
    n = relevance.size(-1)
    row = kept.index_select(0, tokens.flatten()).unflatten(0, tokens.shape).transpose(1, 2)  # [b, H, c, t]
    dropped = torch.ones(*relevance.shape[:-1], n + 1, dtype=torch.bool, device=row.device)
    dropped.scatter_(-1, torch.where(row < 0, n, row - first), False)
    return dropped[..., :n] & (row >= 0).any(-1, keepdim=True)


class _WithGradients(torch.autograd.Function):
    """A scalar with given gradients of q_s and k_s."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, q_s: Tensor, k_s: Tensor, grad_q: Tensor, grad_k: Tensor) -> Tensor:
        """Returns the scalar."""
        ctx.save_for_backward(grad_q, grad_k)
        ctx.types = q_s.dtype, k_s.dtype
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> Tuple[Optional[Tensor], ...]:
        """Returns the gradients of q_s and k_s."""
        grad_q, grad_k = ((grad_loss * x).to(dtype) for x, dtype in zip(ctx.saved_tensors, ctx.types))
        return None, grad_q, grad_k, None, None
