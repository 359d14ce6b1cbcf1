"""Mean of several checkpoints of a training, often better than each of them and as fast as one.

Source: Vaswani et al. 2017, sec. 6.1 (the last 5 or 20 checkpoints). Parameters are averaged, not probabilities.
"""

import math
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import torch
from omegaconf import OmegaConf
from torch import Tensor

from docnmt_fairseq.checkpoints import read_checkpoint, write_checkpoint
from docnmt_fairseq.context.conditional.selection import SCHEDULE_STATE
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of

# Names of --save-interval-updates (epoch and updates) and of the end of an epoch.
SAVED = re.compile(r"checkpoint(?:_(?P<within>\d+)_(?P<updates>\d+)|(?P<epoch>\d+))\.pt")


def last_checkpoints(folder: Path, number: int) -> List[Path]:
    """Returns the last checkpoints of a training, oldest first.

    Args:
        folder: ``--save-dir`` of the training.
        number: number of checkpoints.

    Raises:
        InputError: there are fewer.
    """
    matches = ((SAVED.fullmatch(path.name), path) for path in folder.glob("checkpoint*.pt"))
    order = {path: (int(m["within"] or m["epoch"]), float(m["updates"] or math.inf)) for m, path in matches if m}
    if not 1 <= number <= len(order):
        raise InputError(
            f"--last {number}: {folder} has {len(order)} checkpoints; train with --save-interval-updates N "
            f"--keep-interval-updates {number}, or with --keep-last-epochs {number}"
        )
    return sorted(order, key=order.__getitem__)[-number:]


def average(paths: Sequence[Path], output: Path) -> None:
    """Writes a checkpoint whose parameters are the means of several checkpoints.

    Everything else is taken from the one with the most updates, without the optimizer state.

    Args:
        paths: checkpoints of one training; a repeated one has a higher weight.
        output: checkpoint for fairseq, ``docnmt`` and ``--finetune-from-model``.

    Raises:
        InputError: a checkpoint cannot be read or differs in options, parameters or dictionaries.
    """
    states = _states(paths)
    newest = next(states)
    averaged = {name: value for name, value in newest["model"].items() if _is_parameter(name, value)}
    sums = {name: value.to(torch.float64, copy=True) for name, value in averaged.items()}
    for state in states:
        for name, value in sums.items():
            value += state["model"][name]
        if updates_of(state) > updates_of(newest):
            newest = state
    write_checkpoint(_with_parameters(newest, {name: value / len(paths) for name, value in sums.items()}), output)


def _is_parameter(name: str, value: Tensor) -> bool:
    """Returns whether a tensor is averaged; the state of a schedule is not."""
    return value.is_floating_point() and name.rpartition(".")[2] not in SCHEDULE_STATE


def updates_of(state: Mapping[str, Any]) -> int:
    """Returns the number of updates of a checkpoint."""
    history = state.get("optimizer_history") or [{}]
    return int(history[-1].get("num_updates", 0))


def _states(paths: Sequence[Path]) -> Iterator[Dict[str, Any]]:
    """Yields the content of checkpoints, compared with the first one."""
    first: Dict[str, Any] = {}
    for path in paths:
        state = read_checkpoint(path)
        state.pop("last_optimizer_state", None)  # twice the size of the model
        cfg = state["cfg"].model
        options: Any = OmegaConf.to_container(cfg) if OmegaConf.is_config(cfg) else vars(cfg)
        facts = {flag_of(name): value for name, value in options.items() if name != "seed"}
        facts["dictionaries"] = (state.get("task_state") or {}).get("dictionaries")
        facts.update({name: tuple(value.shape) for name, value in state["model"].items()})
        first = first or facts
        differing = [name for name in {**first, **facts} if first.get(name) != facts.get(name)]
        if differing:
            raise InputError(f"{path}: another model than {paths[0]}: {', '.join(differing[:3])} differ")
        yield state


def _with_parameters(state: Dict[str, Any], means: Mapping[str, Tensor]) -> Dict[str, Any]:
    """Returns a checkpoint with other parameters, in float32 instead of half types; shared ones stay shared."""
    made: Dict[Tuple[int, Tuple[int, ...]], Tensor] = {}
    for name, value in state["model"].items():
        if name in means:
            kind = torch.float32 if value.dtype in (torch.float16, torch.bfloat16) else value.dtype
            key = (value.data_ptr(), tuple(value.shape))
            state["model"][name] = made.setdefault(key, means[name].to(kind))
    return {**state, "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}}
