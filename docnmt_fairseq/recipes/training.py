"""Training of a model of a recipe; an interrupted training is resumed with the same result."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, read_json, sha256, write_json
from docnmt_fairseq.recipes.models import COMMON, SMOKE, Model
from docnmt_fairseq.recipes.processes import Machine, last_value

LAST, BEST = "checkpoint_last.pt", "checkpoint_best.pt"
RECORD = "training.json"  # settings of a training
FINISHED = "finished.json"  # marks the end of a training, which --patience may end before the last update

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Budget:
    """Size and length of a training; see :class:`~docnmt_fairseq.recipes.dataset.Training`.

    Attributes:
        size: size preset of the architecture; empty: its default.
    """

    size: str
    updates: int
    batch_tokens: int
    validate_every: int
    options: List[str]
    smoke: bool = False
    common: bool = True


def training_options(model: Model, budget: Budget, seed: int, initialised: bool = False) -> List[str]:
    """Returns the options of fairseq-train that a trained model depends on.

    Args:
        model, budget, seed: what to train.
        initialised: start from the weights of a sentence-level model instead of from scratch.
    """
    every = str(min(budget.validate_every, budget.updates))
    architecture = "_".join(filter(None, (model.arch, budget.size)))
    return [
        "--task", model.task, "--arch", architecture, "--seed", str(seed),
        "--max-update", str(budget.updates), "--validate-interval-updates", every,
        "--save-interval-updates", every, "--keep-interval-updates", "1", "--no-epoch-checkpoints",
        *(COMMON if budget.common else []), *([] if initialised else model.from_scratch), *budget.options,
        *(SMOKE if budget.smoke else []),
        *model.options(budget.updates), *(model.to_begin if initialised else []),
    ]  # fmt: skip


def train(
    data: PathLike,
    folder: Path,
    model: Model,
    budget: Budget,
    seed: int,
    machine: Machine,
    data_fingerprint: str,
    start: Optional[Path] = None,
) -> None:
    """Trains a model in a folder; resumes an interrupted training, skips a finished one.

    Args:
        data: data-bin, or several with colons between them.
        folder: output folder of checkpoints and ``train.log``.
        model, budget, seed: what to train.
        machine: processes that share each step.
        data_fingerprint: identifies the data.
        start: checkpoint of a sentence-level model to start from; None: train from scratch.
    """
    options, tokens = training_options(model, budget, seed, start is not None), model.sentences * budget.batch_tokens
    record = {"options": options, "batch_tokens": tokens, "data": data_fingerprint}
    if start is not None:
        record["initial_weights"] = sha256(start)
    before = read_json(folder / RECORD)
    if before is None:
        write_json(folder / RECORD, record, indent=1)
    elif before != record:
        names = " ".join(name for name in {**record, **before} if before.get(name) != record.get(name))
        raise InputError(
            f"{folder / RECORD}: the model has other {names.replace('_', ' ')}; remove the folder, or change --output"
        )
    if (folder / FINISHED).exists():
        return
    logger.info(f"training {folder.name}: {folder / 'train.log'}")
    arguments = [str(data), *options, *_fused_optimizer(folder, options, machine)]
    arguments += machine.batch_options(tokens, options)
    arguments += ["--save-dir", str(folder), "--log-format", "json"]
    arguments += ["--log-interval", str(max(1, min(100, budget.updates // 5)))]
    arguments += ["--finetune-from-model", str(start)] if start is not None else []  # ignored when resuming
    machine.train(arguments, folder / "train.log")
    write_json(folder / FINISHED, {})


def _fused_optimizer(folder: Path, options: List[str], machine: Machine) -> List[str]:
    """Options for Adam in fused kernels, which is faster on GPUs; a resumed training keeps its optimizer."""
    if last_value("--optimizer", options) != "adam":
        return []
    history = optimizer_history(folder / LAST)
    fused = history["optimizer_name"] == "FusedAdamW" if history else not machine.cpu
    return ["--optimizer", "fused_adamw"] if fused else []


def optimizer_history(checkpoint: Path) -> Any:
    """Returns name of the optimizer and number of updates of a checkpoint; None if it does not exist."""
    if not checkpoint.exists():
        return None
    from docnmt_fairseq.checkpoints import read_checkpoint  # imports fairseq

    return read_checkpoint(checkpoint)["optimizer_history"][-1]
