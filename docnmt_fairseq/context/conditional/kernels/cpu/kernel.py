"""Kernel ``compiled``: C++ for CPUs, exact, without an N×N matrix ([T] eq. 3-7).

The sources are in ``cpu/``; this file hands tensors over. float32 and float64; half types are computed in float32.
Results and gradients are the same for every number of threads.
"""

import math
from typing import Any, Dict, Iterator, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.kernels.cpu import structures
from docnmt_fairseq.context.conditional.kernels.pytorch.kernel import PyTorchKernel
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey, SelectionPlan
from docnmt_fairseq.context.conditional.tree import TreesOfBatch
from docnmt_fairseq.native.call import call
from docnmt_fairseq.native.library import missing

MOST_PLACES = 16  # that choosing keeps in registers
HALF_TYPES = (torch.bfloat16, torch.float16)
Gradients = Tuple[Optional[Tensor], ...]


def prepared(x: Tensor) -> Tensor:
    """x [..., d_k] contiguous, filled up with zeros to whole vectors: neither scores nor sums see them."""
    missing = -x.size(-1) % structures.DIM_MULTIPLE
    return (F.pad(x, (0, missing)) if missing else x).contiguous()  # padding by nothing would copy


def widened(x: Tensor) -> Tensor:
    """x in a type that the library computes in."""
    return x.float() if x.dtype in HALF_TYPES else x


def gradient_for(x: Tensor, items: Tensor) -> Tensor:
    """Where the library writes the gradient of x [N, H, dim], of whose rows it writes those of ``items``."""
    return torch.empty_like(x) if len(items) == len(x) else torch.zeros_like(x)


class ScoreChosen(torch.autograd.Function):
    """R of the chosen sentences; see :meth:`SelectionKernel.score`."""

    @staticmethod
    def arguments(
        dim: int, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor, **tensors: Tensor
    ) -> structures.Scores:
        """The structure for a call; ``dim`` is d_k."""
        selection = structures.Selection.of(items, sentence, len(k))
        return structures.Scores(
            call=structures.Call.of(q), selection=selection, q=q, k=k, scale=1 / math.sqrt(dim), **tensors
        )

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """[M, H, t]."""
        ctx.dim = q.size(-1)
        saved = prepared(q), prepared(k), items, sentence
        ctx.save_for_backward(*saved)
        scores = q.new_empty(sentence.shape)
        call("kernel_score", ScoreChosen.arguments(ctx.dim, *saved, scores=scores))
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> Gradients:
        """The gradients of q and k."""
        saved = ctx.saved_tensors  # once: recomputed activations can be had a single time
        q, k, items, _ = saved
        grad_scores, grad_q, grad_k = grad_scores.contiguous(), gradient_for(q, items), torch.empty_like(k)
        tensors = {"grad_scores": grad_scores, "grad_q": grad_q, "grad_k": grad_k}
        call("kernel_score_backward", ScoreChosen.arguments(ctx.dim, *saved, **tensors))
        return grad_q[..., : ctx.dim], grad_k[..., : ctx.dim], None, None


class AttendToChosen(torch.autograd.Function):
    """Attention to the chosen sentences' tokens; see :meth:`SelectionKernel.attend`.

    Kept for the backward pass: inputs, output and the log-sum-exp [M, H]; weights are recomputed, dropout included.
    """

    @staticmethod
    def arguments(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, scores: Tensor, out: Tensor, log_sum: Tensor, **gradients: Tensor
    ) -> structures.Attention:
        """The structure for a call."""
        selection = structures.Selection.of(ctx.items, ctx.sentence, len(ctx.offsets) - 1)
        return structures.Attention(
            call=structures.Call.of(q), selection=selection, q=q, k=k, v=v, scores=scores, offsets=ctx.offsets,
            scale=1 / math.sqrt(ctx.dim), dropout=ctx.dropout, seed=ctx.seed, out=out, log_sum=log_sum, **gradients,
        )  # fmt: skip

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        scores: Tensor,
        items: Tensor,
        sentence: Tensor,
        offsets: np.ndarray,
        dropout: float,
    ) -> Tensor:
        """[M, H, d_k]."""
        ctx.items, ctx.sentence, ctx.offsets = items, sentence, offsets
        ctx.dim, ctx.dropout = q.size(-1), dropout
        ctx.seed = int(torch.randint(2**62, ())) if dropout > 0 else 0
        q, k, v, scores = prepared(q), prepared(k), prepared(v), scores.contiguous()
        out, log_sum = q.new_empty(len(items), *q.shape[1:]), q.new_empty(len(items), q.size(1))
        saved = q, k, v, scores, out, log_sum
        call("kernel_attend", AttendToChosen.arguments(ctx, *saved))
        ctx.save_for_backward(*saved)
        return out[..., : ctx.dim] if ctx.dim < out.size(-1) else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> Gradients:
        """The gradients of q, k, v and the scores."""
        saved = ctx.saved_tensors  # once: recomputed activations can be had a single time
        q, k, v, scores, _, _ = saved
        gradients = {
            "grad_q": gradient_for(q, ctx.items),
            "grad_k": gradient_for(k, ctx.items),
            "grad_v": gradient_for(v, ctx.items),
            "grad_scores": torch.zeros_like(scores),
        }
        grad_out = prepared(grad_out)
        call("kernel_attend_backward", AttendToChosen.arguments(ctx, *saved, grad_out=grad_out, **gradients))
        of_tokens = (gradients[name][..., : ctx.dim] for name in ("grad_q", "grad_k", "grad_v"))
        return *of_tokens, gradients["grad_scores"], None, None, None, None


def places_of(layout: DocumentLayout, plan: SelectionPlan) -> Dict[str, Any]:
    """The fields that every choice has: where selection happens, and how much is kept."""
    rows, tokens = plan.documents, layout.document_tokens
    return {
        "documents": len(rows),
        "places": plan.most,
        "kept": plan.kept[rows].astype(np.int64),
        "token": tokens.offsets[rows],
        "tokens": tokens.lengths[rows],
    }


def room_for(plan: SelectionPlan, heads: int) -> Tensor:
    """Room for what is chosen, [M, H, most]."""
    return torch.empty(len(plan.items), heads, plan.most, dtype=torch.long)


@KERNELS.register("compiled")
class CompiledKernel(SelectionKernel):
    """C++ on CPUs."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Whether the tensors are on a CPU and the library is there; builds it if need be."""
        return device.type == "cpu" and dtype in (torch.float32, torch.float64, *HALF_TYPES) and missing() is None

    def missing(self) -> Optional[str]:
        """See :class:`SelectionKernel`."""
        return missing()

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """See :class:`SelectionKernel`."""
        plan = layout.plan(key)
        if plan.most > MOST_PLACES:
            return PyTorchKernel().choose(q, k, layout, key)
        q, k, chosen = prepared(widened(q)), prepared(widened(k)), room_for(plan, q.size(1))
        sentences = {
            "sentence": layout.sentences.offsets[plan.documents],
            "sentences": layout.sentences.lengths[plan.documents],
        }
        places = places_of(layout, plan)
        choice = structures.Choice(call=structures.Call.of(q), q=q, k=k, chosen=chosen, **places, **sentences)
        call("kernel_choose", choice)
        return chosen

    @torch.no_grad()
    def choose_in_tree(self, q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        """See :class:`SelectionKernel`."""
        plan, trees = layout.plan(key), layout.plan(TreesOfBatch())
        if plan.most > MOST_PLACES:
            return super().choose_in_tree(q, keys, layout, key)
        q, keys, chosen = prepared(widened(q)), prepared(widened(keys)), room_for(plan, q.size(1))
        shape = {name: np.ascontiguousarray(getattr(trees, name)[:, plan.documents]) for name in ("first", "counts")}
        places = places_of(layout, plan)
        choice = structures.TreeChoice(call=structures.Call.of(q), q=q, keys=keys, chosen=chosen, **places, **shape)
        call("kernel_choose_in_tree", choice)
        return chosen

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        """See :class:`SelectionKernel`; this one looks into arrays."""
        if walk is not None:
            yield TreesOfBatch()
            yield walk

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """See :class:`SelectionKernel`."""
        return ScoreChosen.apply(widened(q), widened(k), items.contiguous(), sentence.contiguous())

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        """See :class:`SelectionKernel`."""
        inputs = [widened(x) for x in (q, k, v)]
        scores = selection.scores.to(inputs[0].dtype)
        items, sentence = selection.items.contiguous(), selection.sentence.contiguous()
        return AttendToChosen.apply(*inputs, scores, items, sentence, layout.tokens.offsets, dropout).to(q.dtype)
