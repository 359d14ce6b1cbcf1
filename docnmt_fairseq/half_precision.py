"""What fairseq lacks for half precision: ``--bf16`` without a TPU, and checkpoints that hold the weights in full."""

import importlib.util
from typing import Any, Callable, Dict, List, Optional

import torch
from torch import Tensor

FULL = "full_precision_weights"  # in a checkpoint's state of the optimiser


def patch_fairseq() -> None:
    """Lets fairseq use half types on this device, and keep the weights in full, in this process."""
    _keep_bf16_on_this_device()
    _keep_full_precision_weights()


def _keep_bf16_on_this_device() -> None:
    """Makes ``--bf16`` on the command line a half type of CPUs and GPUs; fairseq takes it for a wish for a TPU.

    Where PyTorch knows TPUs (``torch_xla``) fairseq goes on as it does.
    """
    from fairseq.distributed import utils as distributed

    call_main = distributed.call_main
    if importlib.util.find_spec("torch_xla") is not None:
        return

    def on_this_device(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> None:
        if cfg.common.bf16:
            cfg.common.tpu = cfg.distributed_training.tpu = False  # the second: of several processes
        call_main(cfg, main, **kwargs)

    distributed.call_main = on_this_device


def _keep_full_precision_weights() -> None:
    """Makes a training in a half type go on as if it had never stopped.

    fairseq trains weights in float32 and computes with rounded copies; its checkpoints hold the copies only. Here the
    optimiser's state has the weights, too; where it is not loaded, or without this package, the copies serve.
    """
    from fairseq.optim.fp16_optimizer import _FP16OptimizerMixin as Optimizer

    save, load = Optimizer.state_dict, Optimizer.load_state_dict

    def state_dict(self: Any) -> Dict[str, Any]:
        return {**save(self), FULL: [weights.detach() for weights in weights_in_full(self)]}

    def load_state_dict(
        self: Any, state_dict: Dict[str, Any], optimizer_overrides: Optional[Dict[str, Any]] = None
    ) -> None:
        state_dict = dict(state_dict)
        saved, own = state_dict.pop(FULL, []), weights_in_full(self)
        load(self, state_dict, optimizer_overrides)
        if [weights.shape for weights in saved] == [weights.shape for weights in own]:
            with torch.no_grad():
                for weights, other in zip(own, saved):
                    weights.copy_(other)

    Optimizer.state_dict, Optimizer.load_state_dict = state_dict, load_state_dict


def weights_in_full(optimizer: Any) -> List[Tensor]:
    """The weights in float32: one tensor a parameter, or one a device with all of them."""
    weights = optimizer.fp32_params
    return list(weights.values() if isinstance(weights, dict) else weights)
