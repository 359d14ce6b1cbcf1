"""Compiled CPU kernels of the search: attention of hypotheses, and log-sum-exp of logits. The C++ is in ``cpu/``."""

from ctypes import c_int64, c_void_p

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt_fairseq.native.library import Arguments, call, fields, missing

DIM_MULTIPLE = 16  # head widths that the compiled kernel supports


class Look(Arguments):
    """``Look`` of ``step.h``."""

    _fields_ = [
        *fields(c_int64, "threads sentences hypotheses heads dim tokens"),
        *fields(c_void_p, "q"),
        *fields(c_int64, "q_stride"),
        *fields(c_void_p, "k v"),
        *fields(c_int64, "sentence_stride head_stride token_stride"),
        *fields(c_void_p, "seen"),
        *fields(c_int64, "seen_sentence seen_hypothesis"),
        *fields(c_void_p, "out"),
    ]


class Rows(Arguments):
    """``Rows`` of ``step.h``."""

    _fields_ = [*fields(c_int64, "threads rows tokens"), *fields(c_void_p, "logits log_sums")]


def attend_hypotheses(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Returns softmax(q kᵀ / √(d/H)) v of hypotheses, [S, b, d]; no gradient if it is compiled.

    Args:
        q: [S, b, H, d/H] of b hypotheses of each sentence.
        k, v: [S, H, n, d/H] of tokens, with equal strides.
        seen: bool [S, b, n], True where a hypothesis attends; [S, 1, n] if it is the same for all.
    """
    compiled = (
        q.device.type == "cpu"
        and q.dtype == k.dtype == v.dtype == torch.float32
        and q.size(3) % DIM_MULTIPLE == 0
        and not (torch.is_grad_enabled() and any(part.requires_grad for part in (q, k, v)))
        and missing() is None
    )
    if compiled:
        return _attend_compiled(q, k, v, seen)
    found = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=seen[:, None])
    return found.transpose(1, 2).flatten(2)


def _attend_compiled(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    (sentences, hypotheses, heads, dim), tokens = q.shape, k.size(2)
    if q.stride(3) != 1 or q.stride(2) != dim or (sentences > 1 and q.stride(0) != hypotheses * q.stride(1)):
        q = q.clone(memory_format=torch.contiguous_format)  # .contiguous() keeps any stride of a dimension of one
    if k.stride() != v.stride() or k.stride(3) != 1:
        k, v = k.contiguous(), v.contiguous()
    seen = seen if seen.stride(2) == 1 else seen.contiguous()
    out = q.new_empty(sentences, hypotheses, heads * dim)
    call(
        "kernel_look",
        Look(
            threads=torch.get_num_threads(), sentences=sentences, hypotheses=hypotheses, heads=heads, dim=dim,
            tokens=tokens, q=q, q_stride=q.stride(1), k=k, v=v, sentence_stride=k.stride(0), head_stride=k.stride(1),
            token_stride=k.stride(2), seen=seen, seen_sentence=seen.stride(0),
            seen_hypothesis=seen.stride(1) if seen.size(1) > 1 else 0, out=out,
        ),
    )  # fmt: skip
    return out


def log_sum_exp(logits: Tensor) -> Tensor:
    """Returns log Σ_j exp(logits_j), float32 [..., 1], of logits [..., V]; no gradient if it is compiled."""
    compiled = logits.device.type == "cpu" and logits.dtype == torch.float32 and logits.is_contiguous()
    if compiled and not (torch.is_grad_enabled() and logits.requires_grad) and missing() is None:
        sums = logits.new_empty(*logits.shape[:-1], 1)
        threads, tokens = torch.get_num_threads(), logits.size(-1)
        call("kernel_log_sums", Rows(threads=threads, rows=sums.numel(), tokens=tokens, logits=logits, log_sums=sums))
        return sums
    return logits.float().logsumexp(-1, keepdim=True)
