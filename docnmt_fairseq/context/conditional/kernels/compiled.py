"""Kernel ``compiled``: C++ for CPUs, exact, without an N×N matrix ([T] eq. 3-7).

The sources are in ``cpu/``; this file passes tensors to them. Types are float32 and float64; half types are computed
in float32. Results and gradients do not depend on the number of threads.
"""

import math
from ctypes import c_double, c_int64, c_uint64, c_void_p
from typing import Any, Dict, Iterator, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.context.conditional.kernels.base import KERNELS, SelectionKernel
from docnmt_fairseq.context.conditional.selection import Selection, SelectionKey, SelectionPlan
from docnmt_fairseq.context.conditional.tree import TreesOfBatch
from docnmt_fairseq.native.library import Arguments, call, fields, missing

DIM_MULTIPLE = 16  # head widths are padded to multiples of it
MAX_PLACES = 16  # selection keeps this many sentences in registers
HALF_TYPES = (torch.bfloat16, torch.float16)
Gradients = Tuple[Optional[Tensor], ...]


class CompiledKernel(SelectionKernel):
    """C++ on CPUs; selection of more than 16 sentences falls back to PyTorch."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        return device.type == "cpu" and dtype in (torch.float32, torch.float64, *HALF_TYPES) and missing() is None

    def missing(self) -> Optional[str]:
        return missing()

    def plans(self, key: SelectionKey, keeps_own: bool, walk: Optional[SelectionKey]) -> Iterator[PlanKey[Any]]:
        if walk is not None:
            yield TreesOfBatch()
            yield walk

    @torch.no_grad()
    def choose(self, q: Tensor, k: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        plan = layout.plan(key)
        if plan.max_t > MAX_PLACES:
            return super().choose(q, k, layout, key)
        q, k, chosen = padded(widened(q)), padded(widened(k)), new_choice(plan, q.size(1))
        sentences = {
            "sentence": layout.sentences.offsets[plan.documents],
            "sentences": layout.sentences.lengths[plan.documents],
        }
        places = place_fields(layout, plan)
        call("kernel_choose", _Choice(call=_Call.of(q), q=q, k=k, chosen=chosen, **places, **sentences))
        return chosen

    @torch.no_grad()
    def choose_in_tree(self, q: Tensor, keys: Tensor, layout: DocumentLayout, key: SelectionKey) -> Tensor:
        plan, trees = layout.plan(key), layout.plan(TreesOfBatch())
        if plan.max_t > MAX_PLACES:
            return super().choose_in_tree(q, keys, layout, key)
        q, keys, chosen = padded(widened(q)), padded(widened(keys)), new_choice(plan, q.size(1))
        shape = {name: np.ascontiguousarray(getattr(trees, name)[:, plan.documents]) for name in ("first", "counts")}
        places = place_fields(layout, plan)
        call("kernel_choose_in_tree", _TreeChoice(call=_Call.of(q), q=q, keys=keys, chosen=chosen, **places, **shape))
        return chosen

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        return SelectedScores.apply(widened(q), widened(k), items.contiguous(), sentence.contiguous())

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, layout: DocumentLayout, selection: Selection, dropout: float
    ) -> Tensor:
        inputs = [widened(x) for x in (q, k, v)]
        scores = selection.scores.to(inputs[0].dtype)
        items, sentence = selection.items.contiguous(), selection.sentence.contiguous()
        return AttendToSelected.apply(*inputs, scores, items, sentence, layout.tokens.offsets, dropout).to(q.dtype)


def padded(x: Tensor) -> Tensor:
    """Returns x [..., d_k] contiguous and padded with zeros to whole vectors; neither scores nor sums see them."""
    lacking = -x.size(-1) % DIM_MULTIPLE
    return (F.pad(x, (0, lacking)) if lacking else x).contiguous()  # padding by zero elements would copy


def widened(x: Tensor) -> Tensor:
    """Returns x in a type that the library computes in."""
    return x.float() if x.dtype in HALF_TYPES else x


def gradient_for(x: Tensor, items: Tensor) -> Tensor:
    """Returns a tensor for the gradient of x [N, H, dim], of which the library writes the rows of ``items``."""
    return torch.empty_like(x) if len(items) == len(x) else torch.zeros_like(x)


def place_fields(layout: DocumentLayout, plan: SelectionPlan) -> Dict[str, Any]:
    """Returns the fields of every choice: the tokens that select, and t."""
    rows, tokens = plan.documents, layout.document_tokens
    return {
        "documents": len(rows),
        "places": plan.max_t,
        "kept": plan.top_t[rows].astype(np.int64),
        "token": tokens.offsets[rows],
        "tokens": tokens.lengths[rows],
    }


def new_choice(plan: SelectionPlan, heads: int) -> Tensor:
    """Returns an uninitialised tensor for the chosen rows, [M, H, max_t]."""
    return torch.empty(len(plan.items), heads, plan.max_t, dtype=torch.long)


class SelectedScores(torch.autograd.Function):
    """R of the selected sentences; see :meth:`SelectionKernel.score`."""

    @staticmethod
    def arguments(dim: int, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor, **tensors: Tensor) -> "_Scores":
        """Returns the structure for a call; ``dim`` is d_k."""
        selection = _Selection.of(items, sentence, len(k))
        return _Scores(call=_Call.of(q), selection=selection, q=q, k=k, scale=1 / math.sqrt(dim), **tensors)

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns [M, H, t]."""
        ctx.dim = q.size(-1)
        saved = padded(q), padded(k), items, sentence
        ctx.save_for_backward(*saved)
        scores = q.new_empty(sentence.shape)
        call("kernel_score", SelectedScores.arguments(ctx.dim, *saved, scores=scores))
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> Gradients:
        """Returns the gradients of q and k."""
        saved = ctx.saved_tensors  # read once: recomputed activations are available a single time
        q, k, items, _ = saved
        grad_scores, grad_q, grad_k = grad_scores.contiguous(), gradient_for(q, items), torch.empty_like(k)
        tensors = {"grad_scores": grad_scores, "grad_q": grad_q, "grad_k": grad_k}
        call("kernel_score_backward", SelectedScores.arguments(ctx.dim, *saved, **tensors))
        return grad_q[..., : ctx.dim], grad_k[..., : ctx.dim], None, None


class AttendToSelected(torch.autograd.Function):
    """Attention to the selected sentences' tokens; see :meth:`SelectionKernel.attend`.

    Saved for the backward pass: inputs, output and the log-sum-exp [M, H]; weights and dropout are recomputed.
    """

    @staticmethod
    def arguments(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, scores: Tensor, out: Tensor, log_sum: Tensor, **gradients: Tensor
    ) -> "_Attention":
        """Returns the structure for a call."""
        selection = _Selection.of(ctx.items, ctx.sentence, len(ctx.offsets) - 1)
        return _Attention(
            call=_Call.of(q), selection=selection, q=q, k=k, v=v, scores=scores, offsets=ctx.offsets,
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
        """Returns [M, H, d_k]."""
        ctx.items, ctx.sentence, ctx.offsets = items, sentence, offsets
        ctx.dim, ctx.dropout = q.size(-1), dropout
        ctx.seed = int(torch.randint(2**62, ())) if dropout > 0 else 0
        q, k, v, scores = padded(q), padded(k), padded(v), scores.contiguous()
        out, log_sum = q.new_empty(len(items), *q.shape[1:]), q.new_empty(len(items), q.size(1))
        saved = q, k, v, scores, out, log_sum
        call("kernel_attend", AttendToSelected.arguments(ctx, *saved))
        ctx.save_for_backward(*saved)
        return out[..., : ctx.dim] if ctx.dim < out.size(-1) else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> Gradients:
        """Returns the gradients of q, k, v and the scores."""
        saved = ctx.saved_tensors  # read once: recomputed activations are available a single time
        q, k, v, scores, _, _ = saved
        gradients = {
            "grad_q": gradient_for(q, ctx.items),
            "grad_k": gradient_for(k, ctx.items),
            "grad_v": gradient_for(v, ctx.items),
            "grad_scores": torch.zeros_like(scores),
        }
        grad_out = padded(grad_out)
        call("kernel_attend_backward", AttendToSelected.arguments(ctx, *saved, grad_out=grad_out, **gradients))
        token_gradients = (gradients[name][..., : ctx.dim] for name in ("grad_q", "grad_k", "grad_v"))
        return *token_gradients, gradients["grad_scores"], None, None, None, None


# The structures of ``api.h``, field by field.


class _Call(Arguments):
    """Fields of every call."""

    _fields_ = fields(c_int64, "is_double threads heads dim")

    @classmethod
    def of(cls, q: Tensor) -> "_Call":
        """Returns the fields for q [N, H, dim]."""
        return cls(is_double=q.dtype == torch.double, threads=torch.get_num_threads(), heads=q.size(1), dim=q.size(2))


class _Choice(Arguments):
    """KeepTopT of flat relevance."""

    _fields_ = [
        ("call", _Call),
        *fields(c_void_p, "q k"),
        *fields(c_int64, "documents places"),
        *fields(c_void_p, "token tokens sentence sentences kept chosen"),
    ]


class _TreeChoice(Arguments):
    """Walk of sentence trees."""

    _fields_ = [
        ("call", _Call),
        *fields(c_void_p, "q keys"),
        *fields(c_int64, "documents places"),
        *fields(c_void_p, "token tokens kept first counts chosen"),
    ]


class _Selection(Arguments):
    """Selected sentences of M tokens."""

    _fields_ = [*fields(c_int64, "tokens places rows"), *fields(c_void_p, "items sentence")]

    @classmethod
    def of(cls, items: Tensor, sentence: Tensor, rows: int) -> "_Selection":
        """Returns the fields for ``items`` [M] and ``sentence`` [M, H, t], among ``rows`` sentences."""
        return cls(tokens=len(items), places=sentence.size(2), rows=rows, items=items, sentence=sentence)


class _Scores(Arguments):
    """Relevance of selected sentences."""

    _fields_ = [
        ("call", _Call),
        ("selection", _Selection),
        *fields(c_void_p, "q k"),
        ("scale", c_double),
        *fields(c_void_p, "scores grad_scores grad_q grad_k"),
    ]


class _Attention(Arguments):
    """Attention to the tokens of selected sentences."""

    _fields_ = [
        ("call", _Call),
        ("selection", _Selection),
        *fields(c_void_p, "q k v scores offsets"),
        *fields(c_double, "scale dropout"),
        ("seed", c_uint64),
        *fields(c_void_p, "out log_sum grad_out grad_q grad_k grad_v grad_scores"),
    ]


KERNELS["compiled"] = CompiledKernel()
