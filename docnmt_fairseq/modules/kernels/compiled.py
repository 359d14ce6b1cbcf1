"""Kernel ``compiled``: C++ for CPUs, exact, without an N×N matrix ([T] eq. 3-7).

The sources are in ``cpu/``; this file hands tensors over. float32 and float64; half types are computed in float32.
Results and gradients are the same for every number of threads.
"""

import ctypes
import math
from typing import Any, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.kernels.cpu import structures
from docnmt_fairseq.modules.kernels.cpu.library import library, missing
from docnmt_fairseq.modules.kernels.grouped import GroupedKernel
from docnmt_fairseq.modules.kernels.kernel import KERNELS, SelectionKernel
from docnmt_fairseq.modules.sentence_selection import Selection

MOST_PLACES = 16  # that choosing keeps in registers
HALF_TYPES = (torch.bfloat16, torch.float16)
Gradients = Tuple[Optional[Tensor], ...]


def prepared(x: Tensor) -> Tensor:
    """Returns x [..., d_k] contiguous, filled up with zeros to whole vectors: neither scores nor sums see them."""
    return F.pad(x, (0, -x.size(-1) % structures.DIM_MULTIPLE)).contiguous()


def widened(x: Tensor) -> Tensor:
    """Returns x in a type that the library computes in."""
    return x.float() if x.dtype in HALF_TYPES else x


def gradient_for(x: Tensor, items: Tensor) -> Tensor:
    """Returns where the library writes the gradient of x [N, H, dim], of whose rows it writes those of ``items``."""
    return torch.empty_like(x) if len(items) == len(x) else torch.zeros_like(x)


def call(function: str, arguments: structures.Arguments) -> None:
    """Calls a function of the library; other Python threads go on meanwhile."""
    getattr(library(), function)(ctypes.byref(arguments))


class ScoreChosen(torch.autograd.Function):
    """R of the chosen sentences; see :meth:`SelectionKernel.score`."""

    @staticmethod
    def arguments(
        q: Tensor, k: Tensor, items: Tensor, sentence: Tensor, dim: int, **tensors: Tensor
    ) -> structures.Scores:
        """Returns the structure for a call; ``dim`` is d_k."""
        selection = structures.Selection.of(items, sentence, len(k))
        return structures.Scores(
            call=structures.Call.of(q), selection=selection, q=q, k=k, scale=1 / math.sqrt(dim), **tensors
        )

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns [M, H, t]."""
        ctx.dim = q.size(-1)
        saved = prepared(q), prepared(k), items, sentence
        ctx.save_for_backward(*saved)
        scores = q.new_empty(sentence.shape)
        call("kernel_score", ScoreChosen.arguments(*saved, ctx.dim, scores=scores))
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> Gradients:
        """Returns the gradients of q and k."""
        q, k, items, _ = ctx.saved_tensors
        grad_scores, grad_q, grad_k = grad_scores.contiguous(), gradient_for(q, items), torch.empty_like(k)
        tensors = {"grad_scores": grad_scores, "grad_q": grad_q, "grad_k": grad_k}
        call("kernel_score_backward", ScoreChosen.arguments(*ctx.saved_tensors, ctx.dim, **tensors))
        return grad_q[..., : ctx.dim], grad_k[..., : ctx.dim], None, None


class AttendToChosen(torch.autograd.Function):
    """Attention to the chosen sentences' words; see :meth:`SelectionKernel.attend`.

    Kept for the backward pass: inputs, output and the log-sum-exp [M, H]; weights are recomputed, dropout included.
    """

    @staticmethod
    def arguments(
        q: Tensor, k: Tensor, v: Tensor, scores: Tensor, out: Tensor, log_sum: Tensor, ctx: Any, **gradients: Tensor
    ) -> structures.Attention:
        """Returns the structure for a call."""
        return structures.Attention(
            call=structures.Call.of(q),
            selection=structures.Selection.of(ctx.items, ctx.sentence, len(ctx.offsets) - 1),
            **{"q": q, "k": k, "v": v, "scores": scores, "offsets": ctx.offsets},
            **{"scale": 1 / math.sqrt(ctx.dim), "dropout": ctx.dropout, "seed": ctx.seed},
            **{"out": out, "log_sum": log_sum, **gradients},
        )

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
        q, k, v, scores = prepared(q), prepared(k), prepared(v), scores.contiguous()
        out, log_sum = q.new_empty(len(items), *q.shape[1:]), q.new_empty(len(items), q.size(1))
        saved = q, k, v, scores, out, log_sum
        call("kernel_attend", AttendToChosen.arguments(*saved, ctx))
        ctx.save_for_backward(*saved)
        return out[..., : ctx.dim] if ctx.dim < out.size(-1) else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Tensor) -> Gradients:
        """Returns the gradients of q, k, v and the scores."""
        q, k, v, scores, _, _ = ctx.saved_tensors
        gradients = {
            "grad_q": gradient_for(q, ctx.items),
            "grad_k": gradient_for(k, ctx.items),
            "grad_v": gradient_for(v, ctx.items),
            "grad_scores": torch.zeros_like(scores),
        }
        grad_out = prepared(grad_out)
        call(
            "kernel_attend_backward", AttendToChosen.arguments(*ctx.saved_tensors, ctx, grad_out=grad_out, **gradients)
        )
        of_words = (gradients[name][..., : ctx.dim] for name in ("grad_q", "grad_k", "grad_v"))
        return *of_words, gradients["grad_scores"], None, None, None, None


@KERNELS.register("compiled")
class CompiledKernel(SelectionKernel):
    """C++ on CPUs."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns whether the tensors are on a CPU and the library is there; builds it if need be."""
        return device.type == "cpu" and dtype in (torch.float32, torch.float64, *HALF_TYPES) and missing() is None

    def missing(self) -> Optional[str]:
        """Returns why there is no library; see :class:`SelectionKernel`."""
        return missing()

    @torch.no_grad()
    def choose(
        self, q: Tensor, k: Tensor, layout: DocumentLayout, kept: np.ndarray, documents: Optional[np.ndarray] = None
    ) -> Tensor:
        """Returns the chosen rows; see :class:`SelectionKernel`."""
        rows = np.arange(layout.sentences.rows) if documents is None else documents
        t = np.minimum(kept, layout.sentences.lengths)[rows]
        most = int(t.max())
        if most > MOST_PLACES:
            return GroupedKernel().choose(q, k, layout, kept, documents)
        words, sentences = layout.document_words, layout.sentences
        q, k = prepared(widened(q)), prepared(widened(k))
        chosen = torch.empty(int(words.lengths[rows].sum()), q.size(1), most, dtype=torch.long)
        arrays = {
            "word": words.offsets[rows],
            "words": words.lengths[rows],
            "sentence": sentences.offsets[rows],
            "sentences": sentences.lengths[rows],
            "kept": t.astype(np.int64),
        }
        choice = structures.Choice(
            call=structures.Call.of(q), q=q, k=k, documents=len(rows), places=most, chosen=chosen, **arrays
        )
        call("kernel_choose", choice)
        return chosen

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R, of half types in float32; see :class:`SelectionKernel`."""
        return ScoreChosen.apply(widened(q), widened(k), items.contiguous(), sentence.contiguous())

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, selection: Selection, layout: DocumentLayout, dropout: float
    ) -> Tensor:
        """Returns [M, H, d_k]; see :class:`SelectionKernel`."""
        inputs = [widened(x) for x in (q, k, v)]
        scores = selection.scores.to(inputs[0].dtype)
        items, sentence = selection.items.contiguous(), selection.sentence.contiguous()
        return AttendToChosen.apply(*inputs, scores, items, sentence, layout.words.offsets, dropout).to(q.dtype)
