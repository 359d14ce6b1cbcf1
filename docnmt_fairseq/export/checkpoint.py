"""Checkpoint for inference: parameters and configuration without the state of the training."""

import io
from pathlib import Path
from typing import Any, Dict

import torch
from omegaconf import OmegaConf

from docnmt_fairseq.export.trained import TrainedModel
from docnmt_fairseq.files import write_bytes
from docnmt_fairseq.models.transformer.lora import merged_options

HISTORY = ("criterion_name", "optimizer_name", "num_updates")  # updates determine how many sentences are selected


def write_checkpoint(trained: TrainedModel, output: Path) -> None:
    """Writes a model as fairseq and ``docnmt translate`` load it.

    Raises:
        InputError: the file cannot be written.
    """
    stream = io.BytesIO()  # torch.save stores the name of a file in it
    torch.save(_state(trained), stream)
    write_bytes(output, stream.getvalue())


def _state(trained: TrainedModel) -> Dict[str, Any]:
    before = trained.checkpoint
    last = before["optimizer_history"][-1]
    history = {name: last[name] for name in HISTORY if name in last}
    cfg: Any = OmegaConf.to_container(before["cfg"], resolve=True, enum_to_str=True)
    parameters = trained.ensemble.model.state_dict(keep_vars=True)  # keeps shared parameters shared
    return {
        "args": None,
        "cfg": {**cfg, "model": merged_options(cfg["model"])},
        "model": {name: value.detach() for name, value in parameters.items()},
        "task_state": before.get("task_state", {}),
        "optimizer_history": [{**history, "lr_scheduler_state": {}}],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
