"""fairseq's ``--optimizer adam`` in PyTorch's fused kernels: some launches an update instead of eight a parameter."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor
from torch.optim.adamw import adamw

from docnmt_fairseq.compat import PYTORCH
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import option

CPU_SINCE = (2, 4)  # PyTorch's fused kernel
CHUNK = 2**24  # elements of half types that are in float32 at a time

Slot = Tuple[Tensor, Tensor, Tensor, Tensor]  # a gradient, its moments m and v, and the number of steps


@dataclass
class FusedAdamWConfig(FairseqDataclass):
    """fairseq's options of ``adam``."""

    # a tuple, which the command line gives as text
    adam_betas: Any = option((0.9, 0.999), "β1 and β2, the share that the moments of the gradient keep at a step")
    adam_eps: float = option(1e-8, "ε, added to the root of the second moment")
    weight_decay: float = option(0.0, "weight decay, times the learning rate, apart from the gradient")
    lr: List[float] = II("optimization.lr")


@register_optimizer("fused_adamw", dataclass=FusedAdamWConfig)
class FusedAdamW(FairseqOptimizer):
    """AdamW, which fairseq's ``adam`` is, too, as one kernel over all parameters.

    m ← β1 m + (1 − β1) g, v ← β2 v + (1 − β2) g², w ← (1 − λ η) w − η m̂/(√v̂ + ε). In fairseq's ε counts √(1 − β2^i)
    times as much at step i, the inverse of what v̂ is scaled by; that is the whole difference.

    Raises:
        InputError: betas that are none; parameters on a CPU, and a PyTorch older than the kernel for these.
    """

    def __init__(self, cfg: FusedAdamWConfig, params: Iterable[Tensor]):
        super().__init__(cfg)
        params = list(params)
        if PYTORCH < CPU_SINCE and any(parameter.device.type == "cpu" for parameter in params):
            version = ".".join(map(str, CPU_SINCE))
            raise InputError(f"--optimizer fused_adamw: on a CPU PyTorch {version} or later is needed; use adam")
        self._optimizer = MixedAdamW(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> Dict[str, Any]:
        """What a training that goes on takes from its command line, not from the checkpoint."""
        lr = self.cfg.lr
        return {
            "lr": lr if isinstance(lr, float) else lr[0],
            "betas": _betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }


class MixedAdamW(torch.optim.Optimizer):
    """AdamW with moments in float32; parameters of a half type are updated in float32, too, and rounded once.

    Args:
        params: the parameters.
        lr: η.
        betas: β1 and β2.
        eps: ε.
        weight_decay: λ.
    """

    supports_memory_efficient_fp16 = True  # fairseq's names for: half types, and all parameters as one vector
    supports_flat_params = True

    def __init__(
        self, params: Iterable[Tensor], lr: float, betas: Tuple[float, float], eps: float, weight_decay: float
    ):
        # "fused" tells PyTorch that the number of steps, when it is loaded, belongs beside the parameter
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "fused": True}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], float]] = None) -> Optional[float]:  # type: ignore[override]
        """Updates what has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            with_gradient = [parameter for parameter in group["params"] if parameter.grad is not None]
            whole = [parameter for parameter in with_gradient if not _is_half(parameter)]
            self._update(whole, group)
            for halves in _chunks(parameter for parameter in with_gradient if _is_half(parameter)):
                exact = [parameter.float() for parameter in halves]
                self._update(halves, group, exact)
                for parameter, value in zip(halves, exact):
                    parameter.copy_(value)
        return loss

    def _update(self, parameters: List[Tensor], group: Dict[str, Any], updated: Optional[List[Tensor]] = None) -> None:
        """Updates parameters, or values in their place, by the parameters' gradients and state."""
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
        for name, value in state.items():  # fairseq's wrapper for half types leaves them where they were loaded
            state[name] = value.to(parameter.device)
        return gradient, state["exp_avg"], state["exp_avg_sq"], state["step"]


def _is_half(x: Tensor) -> bool:
    return x.dtype in (torch.float16, torch.bfloat16)


def _chunks(parameters: Iterable[Tensor]) -> Iterator[List[Tensor]]:
    """Parameters, some at a time: what is in float32 for the update alone stays small."""
    chunk: List[Tensor] = []
    for parameter in parameters:
        chunk.append(parameter)
        if sum(one.numel() for one in chunk) >= CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _betas(given: Any) -> Tuple[float, float]:
    """β1 and β2 from a sequence, or from the text of one, such as ``(0.9, 0.98)``."""
    try:
        beta1, beta2 = map(float, given.strip("()[] ").split(",") if isinstance(given, str) else given)
    except (ValueError, TypeError):  # the latter: a number alone, as YAML may have it
        raise InputError(f"--adam-betas {given}: must be two numbers such as '(0.9, 0.98)'") from None
    if not (0 <= beta1 < 1 and 0 <= beta2 < 1):
        raise InputError(f"--adam-betas {given}: must both be at least 0 and below 1")
    return beta1, beta2
