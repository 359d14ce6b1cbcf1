"""The mean of several checkpoints of one training: often better than each of them, and as fast as one.

Source: Vaswani et al. 2017, sec. 6.1, where a model is the mean of the last 5 or 20. Parameters are averaged, not
probabilities as in an ensemble, so that all must have grown from one beginning.
"""

import io
import math
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import torch
from omegaconf import OmegaConf
from torch import Tensor

from docnmt_fairseq.checkpoints import read_checkpoint
from docnmt_fairseq.context.conditional.selection import SCHEDULE_BUFFERS
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import write_bytes
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.tasks.dictionaries import differing_dictionaries

# Of an epoch and so many updates (--save-interval-updates), or of an epoch's end, where the former is not written.
SAVED = re.compile(r"checkpoint(?:_(?P<within>\d+)_(?P<updates>\d+)|(?P<epoch>\d+))\.pt")


def last_checkpoints(folder: Path, number: int) -> List[Path]:
    """The last checkpoints of a training, oldest first.

    Args:
        folder: the ``--save-dir`` of the training.
        number: how many.

    Raises:
        InputError: there are fewer.
    """
    if number < 1:
        raise InputError(f"--last {number}: at least 1")
    named = ((SAVED.fullmatch(path.name), path) for path in folder.glob("checkpoint*.pt"))
    found = sorted((_order(match), path) for match, path in named if match)
    if len(found) < number:
        raise InputError(
            f"--last {number}: {folder} has {len(found)} checkpoints of updates and epochs; train with "
            f"--save-interval-updates N --keep-interval-updates {number}, or with --keep-last-epochs {number}"
        )
    return [path for _, path in found[-number:]]


def _order(name: "re.Match[str]") -> Tuple[int, float]:
    return int(name["within"] or name["epoch"]), float(name["updates"] or math.inf)


def average(paths: Sequence[Path], output: Path) -> None:
    """Writes the checkpoint whose parameters are the means of those of others.

    Everything else is that of the one with the most updates, the state of its optimizer apart.

    Args:
        paths: of one training; one may come several times, and then counts as often.
        output: the file; fairseq's commands and ``docnmt`` load it, ``--finetune-from-model`` may begin from it.

    Raises:
        InputError: no checkpoint, one that was exported, or models that differ in options, parameters or dictionaries;
            the file cannot be written.
    """
    states = _states(paths)
    newest = next(states)
    averaged = {name: value for name, value in newest["model"].items() if _is_averaged(name, value)}
    sums = {name: value.to(torch.float64, copy=True) for name, value in averaged.items()}
    for state in states:
        for name, value in sums.items():
            value += state["model"][name]
        if updates_of(state) > updates_of(newest):
            newest = state
    stream = io.BytesIO()  # torch.save names what is inside a file after the file
    torch.save(_without_optimizer(newest, {name: value / len(paths) for name, value in sums.items()}), stream)
    write_bytes(output, stream.getvalue())


def _is_averaged(name: str, value: Tensor) -> bool:
    """Whether a tensor is a parameter; where a schedule is, of how many sentences are kept, has no mean."""
    return value.is_floating_point() and name.rpartition(".")[2] not in SCHEDULE_BUFFERS


def updates_of(state: Mapping[str, Any]) -> int:
    """How many updates the model of a checkpoint had."""
    history = state.get("optimizer_history") or [{}]
    return int(history[-1].get("num_updates", 0))


def _states(paths: Sequence[Path]) -> Iterator[Dict[str, Any]]:
    """Yields what checkpoints hold, each compared with the first."""
    first: Dict[str, Any] = {}
    for path in paths:
        state = read_checkpoint(path)
        state.pop("last_optimizer_state", None)  # as large as the model twice over
        shapes = {name: tuple(value.shape) for name, value in state["model"].items()}
        facts = {"cfg": state["cfg"].model, "shapes": shapes, "task": state.get("task_state")}
        first = first or facts
        differing = [
            *_differing_options(first["cfg"], facts["cfg"]),
            *(f"another {side} dictionary" for side in differing_dictionaries(first["task"], facts["task"])),
            *sorted(name for name, _ in first["shapes"].items() ^ shapes.items())[:1],
        ]
        if differing:
            raise InputError(f"{path}: is not of one model with {paths[0]}: {'; '.join(differing)}")
        yield state


def _differing_options(first: Any, other: Any) -> Iterator[str]:
    """Options of the model that differ between two configurations, each by its flag."""
    one, two = (OmegaConf.to_container(cfg) if OmegaConf.is_config(cfg) else vars(cfg) for cfg in (first, other))
    for name in sorted(one.keys() & two.keys() - {"seed"}):
        if one[name] != two[name]:
            yield f"{flag_of(name)} {one[name]}, {two[name]}"


def _without_optimizer(state: Dict[str, Any], means: Mapping[str, Tensor]) -> Dict[str, Any]:
    """What a checkpoint holds, with other parameters, in float32 where these are of a half type; shared ones stay."""
    made: Dict[Tuple[int, Tuple[int, ...]], Tensor] = {}
    for name, value in state["model"].items():
        if name in means:
            kind = torch.float32 if value.dtype in (torch.float16, torch.bfloat16) else value.dtype
            key = (value.data_ptr(), tuple(value.shape))
            state["model"][name] = made.setdefault(key, means[name].to(kind))
    return {**state, "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}}}
