"""Backend ``packed``: flash attention to rows of different lengths as they are packed, one call and no padding."""

from functools import cache
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.layers.attention_backends.base import ATTENTION_BACKENDS, AttentionBackend

TYPES = (torch.float16, torch.bfloat16)
WIDEST, WIDTH_MULTIPLE = 256, 8  # of heads, that the kernel takes


@cache
def has_kernel(device: torch.device) -> bool:
    """Whether PyTorch has the kernel for a device: a GPU of compute capability 8.0 (Ampere) or later."""
    available = getattr(torch.backends.cuda, "is_flash_attention_available", lambda: False)  # PyTorch 2.1 has none
    if device.type != "cuda" or not available():
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


@ATTENTION_BACKENDS.register("packed")
class PackedAttention(AttentionBackend):
    """PyTorch's ``_flash_attention_forward``, which ``torch.nn.attention.varlen`` calls, too, but without dropout.

    ``torch.backends.cuda.enable_flash_sdp(False)`` switches it off.
    """

    def serves(self, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """See :class:`AttentionBackend`; half types, heads of at most 256 as wide in values as in keys."""
        fits = q.dtype in TYPES and q.dtype == k.dtype == v.dtype and k.size(-1) == v.size(-1) <= WIDEST
        return fits and torch.backends.cuda.flash_sdp_enabled() and has_kernel(q.device)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, plan: AttentionPlan, dropout: float, scale: Optional[float]
    ) -> Tensor:
        """See :class:`AttentionBackend`."""
        d, of_queries, of_keys = q.size(-1), plan.packed_queries, plan.packed_keys
        filled_up = -d % WIDTH_MULTIPLE
        sides = (of_queries.take(q), of_keys.take(k), of_keys.take(v))
        queries, keys, values = (F.pad(x, (0, filled_up)) if filled_up else x for x in sides)
        output, *_ = torch.ops.aten._flash_attention_forward(
            queries, keys, values, of_queries.cumulative, of_keys.cumulative, of_queries.longest, of_keys.longest,
            dropout, plan.causal, False, scale=d**-0.5 if scale is None else scale,
        )  # fmt: skip
        return output[..., :d] if filled_up else output
