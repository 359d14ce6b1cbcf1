"""Label-smoothed cross-entropy from logits, without storing the log-probabilities of all words."""

from typing import Any, Iterator, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.layers.precision import chunk_elements, computing_type

CHUNK = 2**18  # logits per chunk on a CPU, so that they stay in its cache


def label_smoothed_nll(logits: Tensor, target: Tensor, smoothing: float) -> Tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood of each token in nats, [N] and [N], at least in float32.

    With p = softmax(x), ε_i = ε/(V − 1): loss = −(1 − ε − ε_i) log p(y) − ε_i Σ_v log p(v), as fairseq's criterion. The
    gradient of the loss is p − ε_i − (1 − ε − ε_i)·[v = y]; the negative log-likelihood has none.

    Args:
        logits: x [N, V].
        target: y [N].
        smoothing: ε.
    """
    return _LabelSmoothedNll.apply(logits, target, smoothing)


class _LabelSmoothedNll(torch.autograd.Function):
    """Processes rows in chunks in both directions; p is recomputed for the gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, smoothing: float) -> Tuple[Tensor, Tensor]:
        """See :func:`label_smoothed_nll`."""
        ctx.smoothing = smoothing
        ctx.save_for_backward(logits, target)
        of_target, of_all = _weights(logits, smoothing)
        loss = torch.empty(len(logits), dtype=computing_type(logits.dtype), device=logits.device)
        nll = torch.empty_like(loss)
        for x, y, loss_part, nll_part in _chunks(logits, target, loss, nll):
            log_p = x.log_softmax(1, dtype=loss.dtype)
            torch.neg(log_p.gather(1, y.unsqueeze(1)).squeeze(1), out=nll_part)
            torch.sub(of_target * nll_part, of_all * log_p.sum(1), out=loss_part)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> Tuple[Tensor, None, None]:
        """Gradient of the logits, in their type."""
        logits, target = ctx.saved_tensors
        of_target, of_all = _weights(logits, ctx.smoothing)
        gradient = torch.empty_like(logits)
        for x, y, factor, written in _chunks(logits, target, grad_loss, gradient):
            p = x.softmax(1, dtype=grad_loss.dtype)
            right = torch.full((len(y), 1), of_target, dtype=p.dtype, device=p.device)
            p.sub_(of_all).scatter_add_(1, y.unsqueeze(1), right.neg_())
            torch.mul(p, factor.unsqueeze(1), out=p)
            written.copy_(p)
        return gradient, None, None


def _weights(logits: Tensor, smoothing: float) -> Tuple[float, float]:
    """Weights of the target's log-probability and of every word's."""
    of_all = smoothing / (logits.size(1) - 1)
    return 1 - smoothing - of_all, of_all


def _chunks(logits: Tensor, *others: Tensor) -> Iterator[Tuple[Tensor, ...]]:
    rows = max(1, chunk_elements(logits.device, CHUNK) // logits.size(1))
    return zip(*(tensor.split(rows) for tensor in (logits, *others)))
