"""A checkpoint for inference: parameters, in fewer bits where that is wanted, and what fairseq's loader asks for."""

import io
from pathlib import Path
from typing import Any, Dict, Tuple

import torch
from omegaconf import OmegaConf
from torch import Tensor, nn

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.export.trained import TrainedModel
from docnmt_fairseq.exported import INTEGERS, KEY, SCALES, WRITTEN_BY, Exported
from docnmt_fairseq.layers.rounding import BF16, INT8, int8_rows, weights_to_round
from docnmt_fairseq.models.transformer.lora import merged_options

HISTORY = ("criterion_name", "optimizer_name", "num_updates")  # updates decide how many sentences are selected


def write_checkpoint(trained: TrainedModel, output: Path, precision: str) -> None:
    """Writes a model as fairseq and ``docnmt translate`` load it; see :mod:`docnmt_fairseq.exported`.

    Args:
        trained: the model.
        output: the file.
        precision: of ``PRECISIONS``; what is not the weight of a linear map or a table of tokens stays in float32.

    Raises:
        InputError: the file cannot be written.
    """
    stream = io.BytesIO()  # torch.save names what is inside a file after the file
    torch.save(_state(trained, precision), stream)
    atomic_write_bytes(output, stream.getvalue())


def _state(trained: TrainedModel, precision: str) -> Dict[str, Any]:
    before = trained.checkpoint
    last = before["optimizer_history"][-1]
    history = {name: last[name] for name in HISTORY if name in last}
    cfg: Any = OmegaConf.to_container(before["cfg"], resolve=True, enum_to_str=True)
    return {
        KEY: Exported(precision, written_by=WRITTEN_BY).to_json(),
        "args": None,
        "cfg": {**cfg, "model": merged_options(cfg["model"])},
        "model": parameters_of(trained.ensemble.model, precision),
        "task_state": before.get("task_state", {}),
        "optimizer_history": [{**history, "lr_scheduler_state": {}}],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }


def parameters_of(model: nn.Module, precision: str) -> Dict[str, Tensor]:
    """The parameters of a model by name, those that may be rounded in the given precision; shared ones stay shared."""
    rounding = weights_to_round(model)
    made: Dict[int, Tuple[Tensor, ...]] = {}
    found: Dict[str, Tensor] = {}
    for name, value in model.state_dict(keep_vars=True).items():
        if name not in rounding or precision not in (BF16, INT8):
            found[name] = value.detach()
            continue
        if id(value) not in made:
            weight = value.detach()
            made[id(value)] = (weight.bfloat16(),) if precision == BF16 else int8_rows(weight)
        endings = ("",) if precision == BF16 else (INTEGERS, SCALES)
        found.update(zip((name + ending for ending in endings), made[id(value)]))
    return found
