"""What fairseq does in an update for one parameter after the other, for all at once: on a GPU a launch, not hundreds.

The numbers are the same to the bit. It is the norm of the gradients, for which fairseq wants NVIDIA's apex, and in half
types the copies between the model and the weights in float32 that are trained.
"""

from typing import Any, List

import torch
from torch import Tensor

from docnmt_fairseq.half_precision import weights_in_full


def patch_fairseq(norm: bool) -> None:
    """Lets fairseq's optimizers do so, in this process.

    Args:
        norm: the norm, too, for which PyTorch must know the type of the result.
    """
    from fairseq import utils
    from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin as Optimizer

    if norm and not utils.multi_tensor_l2norm_available:
        utils.multi_tensor_total_norm, utils.multi_tensor_l2norm_available = total_norm, True
    to_full, to_half = Optimizer._sync_fp16_grads_to_fp32, Optimizer._sync_fp32_params_to_fp16
    zero = Optimizer.zero_grad

    def gradients_to_full(self: Any) -> None:
        if not self._needs_sync or _is_spread(self):
            to_full(self)
            return
        copies, gradients, missing = [], [], []
        for copy, half in zip(_gradients_in_full(self), self.fp16_params):
            if half.grad is None:
                missing.append(copy)
            else:
                copies.append(copy)
                gradients.append(half.grad.data)
        _copy(copies, gradients)
        _zero(missing)
        self._needs_sync = False

    def weights_to_half(self: Any) -> None:
        if _is_spread(self):
            to_half(self)
        else:
            full = _in_full(self, [full.data for full in weights_in_full(self)])
            _copy([half.data for half in self.fp16_params], full)

    def zero_grad(self: Any) -> None:
        if self.has_flat_params:
            zero(self)
            return
        tensors = self.fp32_params
        _zero([full.grad for full in tensors if full.grad is not None])
        self.fp32_params = []  # nothing is left of what fairseq does one by one
        try:
            zero(self)
        finally:
            self.fp32_params = tensors

    Optimizer._sync_fp16_grads_to_fp32, Optimizer._sync_fp32_params_to_fp16 = gradients_to_full, weights_to_half
    Optimizer.zero_grad = zero_grad


def total_norm(gradients: List[Tensor], chunk_size: int = 0) -> Tensor:
    """√(Σ_i ‖g_i‖²) [], each norm in float32.

    Args:
        gradients: of any type.
        chunk_size: of apex's kernel; without meaning here.
    """
    norms = torch._foreach_norm(gradients, 2, dtype=torch.float32)
    return torch.norm(torch.stack([norm.to(gradients[0].device) for norm in norms]))


def _is_spread(optimizer: Any) -> bool:
    """Whether the weights are on several devices, or some of them are not trained: fairseq's own way, then."""
    spread = isinstance(optimizer.fp32_params, dict) and len(optimizer.fp32_params) > 1
    return spread or not all(half.requires_grad for half in optimizer.fp16_params)


def _in_full(optimizer: Any, tensors: List[Tensor]) -> List[Tensor]:
    """One a parameter, of its shape: the tensors, or views of the vector that they are."""
    halves = optimizer.fp16_params
    if not optimizer.has_flat_params:
        return tensors
    (vector,) = tensors
    pieces = vector[: sum(half.numel() for half in halves)].split([half.numel() for half in halves])
    return [piece.view_as(half) for piece, half in zip(pieces, halves)]


def _gradients_in_full(optimizer: Any) -> List[Tensor]:
    tensors = weights_in_full(optimizer)
    for full in tensors:
        if full.grad is None:
            full.grad = torch.zeros_like(full)
    return _in_full(optimizer, [full.grad.data for full in tensors if full.grad is not None])


def _copy(to: List[Tensor], of: List[Tensor]) -> None:
    if to:
        torch._foreach_copy_(to, of)


def _zero(tensors: List[Tensor]) -> None:
    if tensors:
        torch._foreach_zero_(tensors)
