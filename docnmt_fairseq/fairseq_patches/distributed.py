"""Training with several processes: torchrun, DistributedDataParallel on CPUs, unequal numbers of batches."""

import functools
import os
from typing import Any, Callable, List

from torch import nn

TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE")  # environment of its processes


def join_torchrun(infer_init_method: Callable[..., None]) -> Callable[..., None]:
    """Makes processes that torchrun started train together, also without a GPU each."""

    @functools.wraps(infer_init_method)
    def wrapper(cfg: Any, force_distributed: bool = False) -> None:
        env = os.environ
        if cfg.distributed_init_method or not all(name in env for name in TORCHRUN) or int(env["WORLD_SIZE"]) == 1:
            infer_init_method(cfg, force_distributed)
            return
        cfg.distributed_init_method = "env://"
        cfg.distributed_world_size = int(env["WORLD_SIZE"])
        cfg.distributed_rank = int(env["RANK"])
        cfg.device_id = int(env["LOCAL_RANK"])
        cfg.distributed_no_spawn = True

    return wrapper


def wrap_on_cpu(wrap: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Calls DistributedDataParallel without device ids for models on the CPU."""

    def wrapper(module: nn.Module, device_ids: Any = None, output_device: Any = None, **kwargs: Any) -> nn.Module:
        if not next(module.parameters()).is_cuda:
            device_ids = output_device = None
        return wrap(module=module, device_ids=device_ids, output_device=output_device, **kwargs)

    return wrapper


def skip_missing_batches(train_step: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves out the empty batches that pad a process's last update, unless it has no other."""

    @functools.wraps(train_step)
    def wrapper(self: Any, samples: List[Any], *args: Any, **kwargs: Any) -> Any:
        existing = [sample for sample in samples if sample]
        return train_step(self, existing or samples[:1], *args, **kwargs)

    return wrapper
