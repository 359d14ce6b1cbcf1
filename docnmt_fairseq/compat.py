"""The one place that knows differences between versions of fairseq and PyTorch, and that changes fairseq.

Imported, it installs all changes of fairseq's own functions: those for other versions, which are here, and those of the
modules that have a ``patch_fairseq``.
"""

import argparse
import collections
import importlib
import os
import re
import typing
from types import ModuleType

import numpy as np
import torch

from docnmt_fairseq import (
    changed_options,
    checkpoint_files,
    exported,
    expressions,
    generating,
    half_precision,
    hub_lines,
    lr_scales,
    moving_average,
    multi_tensor,
    resuming,
    stopping,
    training_data,
    training_setup,
    uncaught,
    yaml_options,
)


def _version(module: ModuleType) -> typing.Tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", module.__version__)[:2])


PYTORCH, NUMPY = _version(torch), _version(np)
SAFE_LOADER = PYTORCH >= (2, 6)  # torch.load refuses what could execute something; older PyTorch executes what it loads


def _safe_globals() -> typing.List[typing.Any]:
    """What fairseq's own checkpoints hold beside tensors; nothing in it can execute anything."""
    from fairseq.distributed.utils import _TensorPlaceholder
    from fairseq.logging.meters import AverageMeter, StopwatchMeter, TimeMeter
    from omegaconf import DictConfig, ListConfig
    from omegaconf.base import ContainerMetadata, Metadata
    from omegaconf.nodes import AnyNode

    multiarray = importlib.import_module("numpy.core.multiarray" if NUMPY < (2, 0) else "numpy._core.multiarray")
    names: typing.List[typing.Any] = [argparse.Namespace]  # the options of models without a dataclass
    names += [np.ndarray, np.dtype]  # counts of --eval-bleu in the meters
    for module in ("numpy._core.multiarray", "numpy.core.multiarray"):
        names += [(multiarray._reconstruct, f"{module}._reconstruct"), (multiarray.scalar, f"{module}.scalar")]
    names += sorted({type(np.dtype(code)) for code in "?bhilqBHILQefd"}, key=lambda cls: cls.__name__)
    for meter in (AverageMeter, StopwatchMeter, TimeMeter):  # until fairseq 0.8; they hold numbers
        names += [(meter, f"{module}.{meter.__name__}") for module in ("fairseq.meters", "fairseq.logging.meters")]
    # what several processes send each other when they resume
    names += [_TensorPlaceholder, DictConfig, ListConfig, ContainerMetadata, Metadata, AnyNode]
    return [*names, typing.Any, collections.defaultdict, dict, list, int]


def _allow_fairseq_checkpoints() -> None:
    """Lets PyTorch's safe loader read fairseq's checkpoints."""
    if SAFE_LOADER:
        torch.serialization.add_safe_globals(_safe_globals())


def _switch_off_the_fast_path() -> None:
    """Lets fairseq 0.12.2's own models translate on PyTorch 2, where its encoder layers' fast path fails."""
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    if "_load_from_state_dict" not in vars(TransformerEncoderLayerBase) or PYTORCH < (2, 0):
        return
    initialise = TransformerEncoderLayerBase.__init__

    def without_fast_path(self: typing.Any, *args: typing.Any, **kwargs: typing.Any) -> None:
        initialise(self, *args, **kwargs)
        self.can_use_fastpath = False

    TransformerEncoderLayerBase.__init__ = without_fast_path


def _let_torchrun_start_processes() -> None:
    """Makes ``torchrun`` one training of several processes also without a GPU each, and DDP work on the CPU.

    fairseq otherwise starts as many independent trainings, which overwrite each other's checkpoints.
    """
    from fairseq.distributed import utils as distributed
    from fairseq.models import distributed_fairseq_model as wrapping

    infer = distributed.infer_init_method

    def infer_init_method(cfg: typing.Any, force_distributed: bool = False) -> None:
        env = os.environ
        if cfg.distributed_init_method is None and training_setup.is_one_of_several(env):
            training_setup.warn_of_shared_stores(env)
            cfg.distributed_init_method = "env://"
            cfg.distributed_world_size = int(env["WORLD_SIZE"])
            cfg.distributed_rank = int(env["RANK"])
            cfg.device_id = int(env["LOCAL_RANK"])
            cfg.distributed_no_spawn = True
        else:
            infer(cfg, force_distributed)

    distributed.infer_init_method = infer_init_method
    wrapper = wrapping.DistributedDataParallel

    def on_cpu_too(
        module: torch.nn.Module, device_ids: object = None, output_device: object = None, **kwargs: typing.Any
    ) -> object:
        if not next(module.parameters()).is_cuda:
            device_ids = output_device = None
        return wrapper(module=module, device_ids=device_ids, output_device=output_device, **kwargs)

    wrapping.DistributedDataParallel = on_cpu_too


# fairseq 0.12.2 keeps the encoder layers' weights a second time, for a fast path that fails on PyTorch 2.
FAST_PATH_WEIGHTS = [f"{part}_{kind}" for part in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")]


def drop_fast_path_weights(state_dict: typing.Dict[str, torch.Tensor]) -> None:
    """Removes the second copies from a checkpoint's state."""
    for key in [key for key in state_dict if key.rsplit(".", 1)[-1] in FAST_PATH_WEIGHTS]:
        del state_dict[key]


_allow_fairseq_checkpoints()
expressions.patch_fairseq()
_switch_off_the_fast_path()
_let_torchrun_start_processes()
half_precision.patch_fairseq()
multi_tensor.patch_fairseq(norm=PYTORCH >= (2, 4))
moving_average.patch_fairseq()
lr_scales.patch_fairseq()
training_setup.patch_fairseq()
training_data.patch_fairseq()
resuming.patch_fairseq()
stopping.patch_fairseq()
exported.patch_fairseq()
checkpoint_files.patch_fairseq()
changed_options.patch_fairseq()
hub_lines.patch_fairseq()
generating.patch_fairseq()
uncaught.patch_fairseq()
yaml_options.patch_fairseq()
