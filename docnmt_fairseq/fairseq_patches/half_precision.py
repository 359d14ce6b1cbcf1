"""Half-precision training without a TPU, resumed exactly."""

import functools
import importlib.util
from typing import Any, Callable, Dict, List, Optional

import torch
from torch import Tensor

MASTER_WEIGHTS = "full_precision_weights"  # key in the optimizer state of a checkpoint


def train_bf16_on_this_device(call_main: Callable[..., None]) -> Callable[..., None]:
    """Makes ``--bf16`` use the CPU or GPU; with ``torch_xla`` installed it remains an option for TPUs."""

    @functools.wraps(call_main)
    def wrapper(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> None:
        if cfg.common.bf16 and importlib.util.find_spec("torch_xla") is None:
            cfg.common.tpu = cfg.distributed_training.tpu = False
        call_main(cfg, main, **kwargs)

    return wrapper


def save_master_weights(state_dict: Callable[[Any], Dict[str, Any]]) -> Callable[[Any], Dict[str, Any]]:
    """Adds the float32 weights to the optimizer state."""

    def wrapper(self: Any) -> Dict[str, Any]:
        return {**state_dict(self), MASTER_WEIGHTS: [weights.detach() for weights in master_weights(self)]}

    return wrapper


def load_master_weights(load_state_dict: Callable[..., None]) -> Callable[..., None]:
    """Restores the float32 weights; without them, the half-precision weights of the checkpoint are used."""

    def wrapper(self: Any, state_dict: Dict[str, Any], optimizer_overrides: Optional[Dict[str, Any]] = None) -> None:
        state_dict = dict(state_dict)
        saved, own = state_dict.pop(MASTER_WEIGHTS, []), master_weights(self)
        load_state_dict(self, state_dict, optimizer_overrides)
        if [weights.shape for weights in saved] == [weights.shape for weights in own]:
            with torch.no_grad():
                for weights, other in zip(own, saved):
                    weights.copy_(other)

    return wrapper


def master_weights(optimizer: Any) -> List[Tensor]:
    """Float32 weights of an optimizer: one tensor per parameter, or one per device with all of them."""
    weights = optimizer.fp32_params
    return list(weights.values() if isinstance(weights, dict) else weights)
