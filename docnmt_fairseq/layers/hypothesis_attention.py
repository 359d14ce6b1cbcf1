"""Attention of hypotheses side by side to the tokens of their sentence, of which each may see others."""

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt_fairseq.layers.cpu import structures
from docnmt_fairseq.native.call import call
from docnmt_fairseq.native.library import missing

DIM_MULTIPLE = 16  # what the compiled kernel takes


def attend_hypotheses(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """softmax(q kᵀ / √(d/H)) v of hypotheses, [S, b, d]; without gradient where it is compiled.

    Args:
        q: [S, b, H, d/H] of b hypotheses of each sentence.
        k, v: [S, H, n, d/H] of tokens, of the same strides.
        seen: bool [S, b, n] which of them a hypothesis sees; [S, 1, n]: all see the same.
    """
    if _compiled(q, k, v):
        return _look(q, k, v, seen)
    found = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=seen[:, None])
    return found.transpose(1, 2).flatten(2)


def _compiled(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the compiled kernel takes the tensors."""
    return (
        q.device.type == "cpu"
        and q.dtype == k.dtype == v.dtype == torch.float32
        and q.size(3) % DIM_MULTIPLE == 0
        and not (torch.is_grad_enabled() and any(part.requires_grad for part in (q, k, v)))
        and missing() is None
    )


def _look(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    (sentences, hypotheses, heads, dim), tokens = q.shape, k.size(2)
    if q.stride(3) != 1 or q.stride(2) != dim or (sentences > 1 and q.stride(0) != hypotheses * q.stride(1)):
        q = q.clone(memory_format=torch.contiguous_format)  # .contiguous() keeps any stride of a dimension of one
    if k.stride() != v.stride() or k.stride(3) != 1:
        k, v = k.contiguous(), v.contiguous()
    seen = seen if seen.stride(2) == 1 else seen.contiguous()
    out = q.new_empty(sentences, hypotheses, heads * dim)
    call(
        "kernel_look",
        structures.Look(
            threads=torch.get_num_threads(), sentences=sentences, hypotheses=hypotheses, heads=heads, dim=dim,
            tokens=tokens, q=q, q_stride=q.stride(1), k=k, v=v, sentence_stride=k.stride(0), head_stride=k.stride(1),
            token_stride=k.stride(2), seen=seen, seen_sentence=seen.stride(0),
            seen_hypothesis=seen.stride(1) if seen.size(1) > 1 else 0, out=out,
        ),
    )  # fmt: skip
    return out
