"""Changes to fairseq that the plugin needs: one table, applied by :func:`docnmt_fairseq.register`.

A replacement is a function that takes the original attribute and returns the new one. A patch that only configures
something has a ``setup`` function instead.
"""

import functools
import importlib
import inspect
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Optional, Tuple

from docnmt_fairseq.fairseq_patches import checkpoints, commands, training


@dataclass(frozen=True)
class Patch:
    """Change of one behaviour of fairseq.

    Attributes:
        reason: behaviour without the patch.
        replacements: replacement functions by target, ``module:attribute``.
        setup: function to call once.
        upstream: issue of fairseq, if there is one.
        removable: version or change of fairseq from which the patch is not needed.
    """

    reason: str
    replacements: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    setup: Optional[Callable[[], None]] = None
    upstream: str = ""
    removable: str = "not foreseeable: fairseq is archived"

    def apply(self) -> None:
        """Installs the patch in this process."""
        if self.setup is not None:
            self.setup()
        for target, replacement in self.replacements.items():
            _replace(target, replacement)


PATCHES: Tuple[Patch, ...] = (
    Patch(
        "PyTorch's safe loader refuses the namespaces, meters and configurations in fairseq's checkpoints.",
        setup=checkpoints.allow_fairseq_checkpoints,
        removable="when fairseq registers them with torch.serialization.add_safe_globals",
    ),
    Patch(
        "Options such as --adam-betas are passed to eval, also those in a checkpoint, which could execute anything.",
        setup=checkpoints.replace_eval,
        upstream="https://github.com/facebookresearch/fairseq/issues/4869",
        removable="when fairseq uses ast.literal_eval",
    ),
    Patch(
        "checkpoint_last.pt is copied in place and failed writes are appended to: a killed run or a full disk damages "
        "the only checkpoint.",
        {
            "fairseq.checkpoint_utils:torch_persistent_save": checkpoints.save_atomically,
            "fairseq.file_io:PathManager.copy": checkpoints.copy_atomically,
        },
    ),
    Patch(
        "--bf16 on the command line selects a TPU.",
        {"fairseq.distributed.utils:call_main": commands.train_bf16_on_this_device},
        upstream="https://github.com/facebookresearch/fairseq/issues/4696",
    ),
    Patch(
        "Half-precision checkpoints lack the float32 weights, so a resumed training differs from an uninterrupted one.",
        {
            "fairseq.optim.fp16_optimizer:_FP16OptimizerMixin.state_dict": checkpoints.save_master_weights,
            "fairseq.optim.fp16_optimizer:_FP16OptimizerMixin.load_state_dict": checkpoints.load_master_weights,
        },
    ),
    Patch(
        "torchrun without a GPU per process starts independent trainings that overwrite each other's checkpoints, and "
        "DistributedDataParallel gets device ids on the CPU.",
        {
            "fairseq.distributed.utils:infer_init_method": commands.join_torchrun,
            "fairseq.models.distributed_fairseq_model:DistributedDataParallel": commands.wrap_on_cpu,
        },
    ),
    Patch(
        "A process without the last batch of an update does not count its other batches, but adds their gradients.",
        {"fairseq.trainer:Trainer.train_step": training.skip_missing_batches},
    ),
    Patch(
        "A signal (end of a job's time, preemption) ends the training without a checkpoint.",
        {"fairseq_cli.train:validate_and_save": training.save_and_exit_on_signal},
    ),
    Patch(
        "A finished training that is started again makes one more update, and a run of a hydra sweep compares its best "
        "loss with that of the previous run.",
        {"fairseq.checkpoint_utils:load_checkpoint": training.keep_finished_runs},
    ),
    Patch(
        "All parameters have the same learning rate (--context-lr-scale).",
        {"fairseq.trainer:Trainer._build_optimizer": training.group_by_lr_scale},
    ),
    Patch(
        "Input errors end with a traceback.",
        {
            "sys:excepthook": commands.print_one_line,
            "hydra.core.utils:JobReturn.return_value": commands.exit_after_one_line,
        },
    ),
    Patch(
        "from_pretrained(…).translate applies subwords to document boundaries, and leaves out language tokens and the "
        "results of skipped sentences.",
        {
            "fairseq.hub_utils:GeneratorHubInterface.encode": commands.encode_by_task,
            "fairseq.hub_utils:GeneratorHubInterface.generate": commands.keep_every_sentence,
        },
    ),
    Patch(
        "Deprecation warnings of fairseq's own calls and repeated lines about batches bury the rest of the log.",
        setup=commands.shorten_startup_log,
    ),
)


@functools.cache
def apply() -> None:
    """Installs all patches, once per process."""
    import fairseq  # noqa: F401  (its modules must be complete before they are patched)

    for patch in PATCHES:
        patch.apply()


def _replace(target: str, replacement: Callable[[Any], Any]) -> None:
    module, _, attribute = target.partition(":")
    *classes, name = attribute.split(".")
    main = sys.modules["__main__"]
    runs_module = getattr(getattr(main, "__spec__", None), "name", None) == module  # python -m fairseq_cli.train
    owner = functools.reduce(getattr, classes, main if runs_module else importlib.import_module(module))
    new = replacement(getattr(owner, name))
    is_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    setattr(owner, name, staticmethod(new) if is_static else new)
