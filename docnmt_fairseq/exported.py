"""Checkpoints for inference that ``docnmt export`` wrote: how they hold weights, and how fairseq comes to load them.

Such a checkpoint is fairseq's, without the state of a training. Its parameters are under their names, some in bfloat16;
those in int8 are integers [n, w] and scales [n] under names of their own, so that fairseq by itself, which would take
the integers for the weight, misses them instead.
"""

from dataclasses import asdict, dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

import torch
from torch import Tensor

from docnmt_fairseq import __version__
from docnmt_fairseq.errors import InputError

KEY = "docnmt_export"  # of what a checkpoint says about itself
VERSION = 1
WRITTEN_BY = f"docnmt_fairseq {__version__}"
INTEGERS, SCALES = ".int8", ".scales"  # behind the name of a parameter


@dataclass(frozen=True)
class Exported:
    """What an exported checkpoint says about itself.

    Attributes:
        precision: that weights are rounded to, and so that of translating with them: "bf16" or "int8"; "float32": they
            are not rounded.
        version: of the format.
        written_by: the package that wrote it, with its version.
    """

    precision: str
    version: int = VERSION
    written_by: str = ""

    @classmethod
    def of(cls, checkpoint: Mapping[str, Any]) -> "Optional[Exported]":
        """What a checkpoint says; None: it was written by a training."""
        facts = checkpoint.get(KEY)
        return None if facts is None else cls(facts["precision"], facts["version"], facts["written_by"])

    @property
    def rounded_to(self) -> Optional[str]:
        """The precision that weights are rounded to; None: they are not."""
        return None if self.precision == "float32" else self.precision

    def to_json(self) -> Dict[str, Any]:
        """As plain values."""
        return asdict(self)


def of_int8_rows(integers: Tensor, scales: Tensor) -> Tensor:
    """The weight [n, w] in float32 that integers [n, w] and scales [n] stand for."""
    return integers.float() * scales[:, None]


def restore(checkpoint: Dict[str, Any], path: object) -> None:
    """Gives an exported checkpoint its parameters in float32 back, in place.

    Args:
        checkpoint: one of any kind.
        path: of it, for messages.

    Raises:
        InputError: a format of a newer version.
    """
    facts = checkpoint.get(KEY)
    if facts is None:
        return
    if facts["version"] > VERSION:
        raise InputError(
            f"{path}: exported by {facts['written_by']} in version {facts['version']} of the format, of which this one "
            f"reads up to {VERSION}; install that docnmt_fairseq, or export again"
        )
    stored: Dict[str, Tensor] = checkpoint["model"]
    restored: Dict[Tuple[int, ...], Tensor] = {}  # what is shared stays so
    checkpoint["model"] = parameters = {}
    for name, value in stored.items():
        place = (value.data_ptr(), *value.shape)
        if name.endswith(INTEGERS):
            name = name[: -len(INTEGERS)]
            if place not in restored:
                restored[place] = of_int8_rows(value, stored[name + SCALES])
            parameters[name] = restored[place]
        elif not name.endswith(SCALES):
            is_rounded = value.dtype == torch.bfloat16  # what is more exact than float32 stays so
            parameters[name] = restored.setdefault(place, value.float()) if is_rounded else value


def patch_fairseq() -> None:
    """Lets fairseq load such checkpoints in this process, but not train them."""
    from fairseq import checkpoint_utils

    load = checkpoint_utils.load_checkpoint_to_cpu

    def load_and_restore(
        path: Any, arg_overrides: Optional[Dict[str, Any]] = None, load_on_all_ranks: Optional[bool] = None
    ) -> Dict[str, Any]:
        checkpoint: Dict[str, Any] = load(path, arg_overrides, bool(load_on_all_ranks))
        if KEY in checkpoint and load_on_all_ranks is not None:  # which only fairseq's trainer says
            raise InputError(
                f"{path}: was exported for inference, without the state of its training and perhaps in fewer bits; "
                "give --restore-file and --finetune-from-model the checkpoint that it was made from"
            )
        restore(checkpoint, path)
        return checkpoint

    checkpoint_utils.load_checkpoint_to_cpu = load_and_restore
