"""What is asked of a training before it starts: what fairseq would ignore or fail at is refused or set right."""

import atexit
import logging
import os
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Optional

import torch

from docnmt_fairseq import best_checkpoint
from docnmt_fairseq.errors import refuse
from docnmt_fairseq.generating import problems_of_least
from docnmt_fairseq.locks import holding, in_folder
from docnmt_fairseq.model_overrides import parse_overrides
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.resuming import LAST
from docnmt_fairseq.stopping import REQUEST

TASKS = ("document_translation", "concatenated_translation")
RATES = "--context-lr-scale"
PLAIN = ("c10d", "pytorch_ddp")  # what takes every parameter to be used in every batch

_held = ExitStack()  # the folder of the training that goes on in this process

logger = logging.getLogger(__name__)


def patch_fairseq() -> None:
    """Lets fairseq's commands and its trainer ask here, in this process."""
    from fairseq.distributed import utils as distributed
    from fairseq.trainer import Trainer

    initialise, call_main = Trainer.__init__, distributed.call_main

    def prepared(self: Any, cfg: Any, task: Any, *args: Any, **kwargs: Any) -> None:
        prepare(cfg)
        _hold(cfg)
        _forget_best()
        initialise(self, cfg, task, *args, **kwargs)
        check_validation(self)
        best_checkpoint.check_metric(self)
        REQUEST.listen(getattr(cfg.task, "save_on_signals", ""))

    def checked(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> None:
        # Now: before the trainer is made, fairseq looks for a package for it, and lets processes meet.
        refuse(chain(problems_of_sharding(cfg), problems_of_backend(cfg, os.environ)))
        with _held:
            call_main(cfg, main, **kwargs)

    Trainer.__init__, distributed.call_main = prepared, checked


def prepare(cfg: Any) -> None:
    """Sets right what a training's configuration lacks.

    Args:
        cfg: fairseq's configuration.

    Raises:
        InputError: what fairseq would ignore or fail at, all of it, by the options' flags.
    """
    problems = (_problems_of_types(cfg.common), problems_of_sharding(cfg), _problems_of_rates(cfg))
    parts = (cfg.dataset, cfg.common, cfg.checkpoint)
    numbers = (_problems_of_steps(cfg), *(problems_of_least(part) for part in parts))
    refuse(chain(*problems, _problems_of_beginning(cfg.checkpoint), *numbers, best_checkpoint.problems_of(cfg)))
    parallel, layerdrop = cfg.distributed_training, _layerdrop(cfg)
    if layerdrop and parallel.ddp_backend in PLAIN and not parallel.find_unused_parameters:
        logger.info(f"{layerdrop}: a batch leaves layers out, so --find-unused-parameters is on")
        parallel.find_unused_parameters = True
    if _scales_rates(cfg) and cfg.common.fp16 and not cfg.common.fp16_no_flatten_grads:
        logger.info(f"{RATES}: parameters of several learning rates do not go into one vector; --fp16-no-flatten-grads")
        cfg.common.fp16_no_flatten_grads = True
    if _is_adam_in_parts(cfg):
        logger.info(
            "--optimizer adam: without NVIDIA's apex it starts seven operations a parameter, which a GPU waits for; "
            "--optimizer fused_adamw makes the same steps at once"
        )


def check_validation(trainer: Any) -> None:
    """Looks for sentences of the validation that are too long, which fairseq would find when an epoch is trained.

    Raises:
        InputError: there are some, and they are not to be left out; names the first one.
    """
    from fairseq.utils import resolve_max_positions

    cfg, task = trainer.cfg.dataset, trainer.task
    if cfg.disable_validation or cfg.skip_invalid_size_inputs_valid_test or _name_of_task(trainer.cfg) not in TASKS:
        return
    longest = resolve_max_positions(task.max_positions(), trainer.model.max_positions())
    for split in cfg.valid_subset.split(","):
        if split in task.datasets:
            dataset = task.dataset(split)
            task.filter_indices_by_size(dataset.ordered_indices(), dataset, longest)


def _hold(cfg: Any) -> None:
    """Holds the folder of checkpoints until fairseq's command ends, in the process that writes there.

    Raises:
        InputError: another training writes there.
    """
    from fairseq.file_io import PathManager

    folder = cfg.checkpoint.save_dir
    if cfg.distributed_training.distributed_rank or cfg.checkpoint.no_save or not PathManager.supports_rename(folder):
        return
    _held.close()  # where a script trains without fairseq's command, one training after another
    place = f"--save-dir {folder}"
    # Absolute: fairseq-hydra-train has another working directory by the time that it ends, or trains the next model.
    lock = in_folder(Path(folder).absolute())
    _held.enter_context(holding(lock, place, inherited=False))  # loaders of a killed one end later
    atexit.register(_let_go, os.getpid())  # fairseq-hydra-train began before this plugin was there to end it


def _let_go(process: int) -> None:
    if os.getpid() == process:  # not one that was forked
        _held.close()


def _forget_best() -> None:
    """Begins without the best validation of another training of this process, as fairseq-hydra-train -m has several.

    fairseq keeps it in its function: a later training would only have a best checkpoint where it is better than that.
    """
    from fairseq import checkpoint_utils

    vars(checkpoint_utils.save_checkpoint).pop("best", None)


def problems_of_sharding(cfg: Any) -> Iterator[str]:
    """Why the parameters cannot be shared out among processes, if they are to be."""
    if cfg.distributed_training.ddp_backend == "fully_sharded" and _name_of_task(cfg) in TASKS:
        yield (
            "--ddp-backend fully_sharded: not supported, as parts of document models are used outside the layers that "
            "it would gather them for; use pytorch_ddp or legacy_ddp, and --checkpoint-activations to save memory"
        )


def is_one_of_several(environment: Mapping[str, str]) -> bool:
    """Whether torchrun started a process of that environment, and others beside it."""
    started = all(name in environment for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK"))
    return started and int(environment.get("WORLD_SIZE", "1")) > 1


def problems_of_backend(cfg: Any, environment: Mapping[str, str]) -> Iterator[str]:
    """Why processes that train together cannot talk to each other, if so.

    Args:
        cfg: fairseq's configuration.
        environment: of one of the processes.
    """
    on_cpu = cfg.common.cpu or not torch.cuda.is_available()
    if on_cpu and is_one_of_several(environment) and cfg.distributed_training.distributed_backend == "nccl":
        yield "--distributed-backend nccl: needs a GPU for each process; on CPUs give --cpu --distributed-backend gloo"


def _problems_of_rates(cfg: Any) -> Iterator[str]:
    """Why parameters cannot have learning rates of their own, if they are to."""
    if _scales_rates(cfg) and getattr(cfg.optimizer, "_name", None) == "composite":
        yield f"{RATES}: not with --optimizer composite, which has groups of its own"
    if _scales_rates(cfg) and cfg.distributed_training.zero_sharding != "none":
        yield f"{RATES}: not with --zero-sharding, which deals out parameters by itself"


def _problems_of_beginning(cfg: Any) -> Iterator[str]:
    """Why a training cannot begin from the checkpoint it is to begin from; fairseq would without it, or fail."""
    from fairseq.file_io import PathManager

    last = str(Path(cfg.save_dir) / LAST)
    restore, start = cfg.restore_file, cfg.finetune_from_model
    if restore not in (LAST, last) and not cfg.checkpoint_suffix:
        yield from _problems_of_checkpoint(f"--restore-file {restore}", restore, "or leave it out to begin anew")
    if start is not None and not PathManager.exists(last):
        yield from _problems_of_checkpoint(f"--finetune-from-model {start}", start, "to begin from")
    if start is not None and restore != LAST:
        yield f"--restore-file {restore}: not with --finetune-from-model {start}; give one of them"
    if parse_overrides(cfg.optimizer_overrides) is None:
        example = "\"{'lr': 0.1}\""
        yield f"--optimizer-overrides {cfg.optimizer_overrides}: is no dictionary of options by name, such as {example}"


def _problems_of_checkpoint(given: str, path: str, what_for: str) -> Iterator[str]:
    from fairseq.file_io import PathManager

    if not PathManager.exists(path):
        yield f"{given}: no such file; name a checkpoint {what_for}"
    elif Path(path).is_dir():
        yield f"{given}: is a folder; name a checkpoint in it {what_for}"


def _problems_of_steps(cfg: Any) -> Iterator[str]:
    """Steps of no batches, and no steps to warm up in: fairseq divides by their number."""
    if min(cfg.optimization.update_freq, default=0) < 1:
        yield f"--update-freq {','.join(map(str, cfg.optimization.update_freq))}: must be at least 1"
    scheduler = cfg.lr_scheduler
    if getattr(scheduler, "_name", None) == "inverse_sqrt" and scheduler.warmup_updates < 1:
        yield f"--warmup-updates {scheduler.warmup_updates}: must be at least 1 with --lr-scheduler inverse_sqrt"


def _is_adam_in_parts(cfg: Any) -> bool:
    """Whether it is fairseq's Adam of one parameter after the other, on a GPU."""
    from fairseq.optim.fused_adam import get_fused_adam_class

    optimizer, flat = cfg.optimizer, cfg.common.fp16 and not cfg.common.fp16_no_flatten_grads
    if not torch.cuda.is_available() or cfg.common.cpu or flat or getattr(optimizer, "_name", None) != "adam":
        return False
    return bool(optimizer.use_old_adam) or get_fused_adam_class() is None


def _name_of_task(cfg: Any) -> Optional[str]:
    return getattr(cfg.task, "_name", None)


def _scales_rates(cfg: Any) -> bool:
    return float(getattr(cfg.model, "context_lr_scale", 1)) != 1


def warn_of_shared_stores(environment: Mapping[str, str]) -> None:
    """Says that processes which torchrun starts again may find the addresses of those before them.

    Only what starts them can see to it that they do not.

    Args:
        environment: of one of the processes.
    """
    shared = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if shared and int(environment.get("TORCHELASTIC_MAX_RESTARTS", "0")) > 0 and environment["RANK"] == "0":
        logger.warning(
            "--max-restarts: processes that are started again may look for those before them, and fail or wait for "
            "nothing; start them with python -m docnmt_fairseq.torchrun --rdzv-backend c10d, or set "
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun"
        )


def _problems_of_types(common: Any) -> Iterator[str]:
    if torch.cuda.is_available() and not common.cpu:
        return
    if common.fp16:
        flag = "--memory-efficient-fp16" if common.memory_efficient_fp16 else "--fp16"
        yield f"{flag}: needs a GPU, fairseq scales its losses there only; on a CPU use {flag.replace('fp16', 'bf16')}"
    if common.amp:
        yield "--amp: needs a GPU, on a CPU fairseq trains in float32 all the same; use --bf16"


def _layerdrop(cfg: Any) -> str:
    """The options by which layers are left out, as given; empty: there are none."""
    names = [name for name in ("encoder_layerdrop", "decoder_layerdrop") if getattr(cfg.model, name, None)]
    return " ".join(f"{flag_of(name)} {getattr(cfg.model, name):g}" for name in names)
