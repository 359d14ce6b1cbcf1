"""log Σ exp of the last dimension, for logits of a large vocabulary."""

import torch
from torch import Tensor

from docnmt_fairseq.layers.cpu import structures
from docnmt_fairseq.native.call import call
from docnmt_fairseq.native.library import missing


def log_sum_exp(logits: Tensor) -> Tensor:
    """log Σ_j exp(logits_j), float32 [..., 1], of logits [..., V]; without gradient where it is compiled."""
    compiled = logits.device.type == "cpu" and logits.dtype == torch.float32 and logits.is_contiguous()
    if compiled and not (torch.is_grad_enabled() and logits.requires_grad) and missing() is None:
        sums = logits.new_empty(*logits.shape[:-1], 1)
        threads, tokens = torch.get_num_threads(), logits.size(-1)
        rows = structures.Rows(threads=threads, rows=sums.numel(), tokens=tokens, logits=logits, log_sums=sums)
        call("kernel_log_sums", rows)
        return sums
    return logits.float().logsumexp(-1, keepdim=True)
