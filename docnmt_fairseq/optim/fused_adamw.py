"""Optimizer ``fused_adamw``: fairseq's ``adam`` with PyTorch's fused kernels, a few launches per update."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor
from torch.optim.adamw import adamw

from docnmt_fairseq.options import option

CHUNK = 2**24  # half-precision elements that are converted to float32 at a time

Slot = Tuple[Tensor, Tensor, Tensor, Tensor]  # gradient, moments m and v, number of steps


@dataclass
class FusedAdamWConfig(FairseqDataclass):
    """Options of fairseq's ``adam``."""

    # a tuple, which is a string on the command line
    adam_betas: Any = option((0.9, 0.999), "β1 and β2, decay rates of the moments of the gradient")
    adam_eps: float = option(1e-8, "ε, added to the root of the second moment")
    weight_decay: float = option(0.0, "weight decay, multiplied by the learning rate and independent of the gradient")
    lr: List[float] = II("optimization.lr")


@register_optimizer("fused_adamw", dataclass=FusedAdamWConfig)
class FusedAdamW(FairseqOptimizer):
    """AdamW (as fairseq's ``adam``) as one kernel over all parameters.

    m ← β1 m + (1 − β1) g, v ← β2 v + (1 − β2) g², w ← (1 − λ η) w − η m̂/(√v̂ + ε). The only difference to fairseq: there
    ε is multiplied by 1/√(1 − β2^i) at step i, as v̂ is.
    """

    def __init__(self, cfg: FusedAdamWConfig, params: Iterable[Tensor]):
        super().__init__(cfg)
        self._optimizer = MixedAdamW(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """Settings that a resumed training takes from its command line, not from the checkpoint."""
        lr = self.cfg.lr
        return {
            "lr": lr if isinstance(lr, float) else lr[0],
            "betas": _betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }


class MixedAdamW(torch.optim.Optimizer):
    """AdamW with moments in float32; half-precision parameters are updated in float32 and rounded once.

    Args:
        params: parameters.
        lr: η.
        betas: β1 and β2.
        eps: ε.
        weight_decay: λ.
    """

    supports_memory_efficient_fp16 = True
    supports_flat_params = True

    def __init__(
        self, params: Iterable[Tensor], lr: float, betas: Tuple[float, float], eps: float, weight_decay: float
    ):
        # With "fused", PyTorch loads the number of steps onto the device of the parameter.
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "fused": True}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], float]] = None) -> Optional[float]:  # type: ignore[override]
        """Updates the parameters that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            with_gradient = [parameter for parameter in group["params"] if parameter.grad is not None]
            self._update([parameter for parameter in with_gradient if not _is_half(parameter)], group)
            for halves in _chunks(parameter for parameter in with_gradient if _is_half(parameter)):
                exact = [parameter.float() for parameter in halves]
                self._update(halves, group, exact)
                for parameter, value in zip(halves, exact):
                    parameter.copy_(value)
        return loss

    def _update(self, parameters: List[Tensor], group: Dict[str, Any], updated: Optional[List[Tensor]] = None) -> None:
        """Updates the parameters, or float32 copies of them, by the parameters' gradients and state."""
        if not parameters:
            return
        gradients, first, second, steps = map(list, zip(*(self._slot(parameter) for parameter in parameters)))
        beta1, beta2 = group["betas"]
        adamw(
            updated or parameters, gradients, first, second, [], steps, fused=True, amsgrad=False, beta1=beta1,
            beta2=beta2, lr=group["lr"], weight_decay=group["weight_decay"], eps=group["eps"], maximize=False,
        )  # fmt: skip

    def _slot(self, parameter: Tensor) -> Slot:
        assert parameter.grad is not None
        gradient, state = parameter.grad, self.state[parameter]
        if _is_half(gradient):
            gradient = gradient.float()
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(gradient), torch.zeros_like(gradient)
        for name, value in state.items():  # fairseq's half-precision wrapper leaves it on the device of the checkpoint
            state[name] = value.to(parameter.device)
        return gradient, state["exp_avg"], state["exp_avg_sq"], state["step"]


def _is_half(x: Tensor) -> bool:
    return x.dtype in (torch.float16, torch.bfloat16)


def _chunks(parameters: Iterable[Tensor]) -> Iterator[List[Tensor]]:
    """Groups of parameters, which limit the memory of the float32 copies."""
    chunk: List[Tensor] = []
    for parameter in parameters:
        chunk.append(parameter)
        if sum(one.numel() for one in chunk) >= CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _betas(given: Any) -> Tuple[float, float]:
    """Parses β1 and β2 from a sequence or a string such as ``(0.9, 0.98)``."""
    beta1, beta2 = map(float, given.strip("()[] ").split(",") if isinstance(given, str) else given)
    return beta1, beta2
