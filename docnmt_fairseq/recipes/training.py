"""Training of a model of a recipe and its translations; an interrupted training is resumed with the same result."""

import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Optional

import docnmt_fairseq
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, partial_path, read_json, sha256, write_json
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.recipes.models import COMMON, SEARCH, SMOKE, Model
from docnmt_fairseq.recipes.processes import Machine, fairseq, last_value, run
from docnmt_fairseq.translate.view import DocumentView

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


def check_size(model: Model, size: str, option: str) -> None:
    """Raises an error if an architecture lacks a size preset.

    Args:
        model: model to train.
        size: as in :class:`Budget`.
        option: option or key that gives the size, for error messages.
    """
    docnmt_fairseq.register()
    from fairseq.models import ARCH_MODEL_REGISTRY

    from docnmt_fairseq.models.transformer.presets import SIZES

    known = [name for name in SIZES if _architecture(model, name) in ARCH_MODEL_REGISTRY]
    if known and _architecture(model, size) not in ARCH_MODEL_REGISTRY:  # none known: an architecture of --user-dir
        raise InputError(f"{option} {size}: no such size of {model.arch}; known: {', '.join(known)}")


def _architecture(model: Model, size: str) -> str:
    return "_".join(filter(None, (model.arch, size)))


def training_options(model: Model, budget: Budget, seed: int, initialised: bool = False) -> List[str]:
    """Returns the options of fairseq-train that a trained model depends on.

    Args:
        model, budget, seed: what to train.
        initialised: start from the weights of a sentence-level model instead of from scratch.
    """
    every = str(min(budget.validate_every, budget.updates))
    return [
        "--task", model.task, "--arch", _architecture(model, budget.size), "--seed", str(seed),
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

    Raises:
        InputError: the folder holds a model with other settings, or the training failed.
    """
    options = training_options(model, budget, seed, initialised=start is not None)
    tokens = model.sentences * budget.batch_tokens
    record = {"options": options, "batch_tokens": tokens, "data": data_fingerprint}
    if start is not None:
        record["initial_weights"] = sha256(start)
    _check_record(folder / RECORD, record)
    if (folder / FINISHED).exists():
        return
    share = machine.share(tokens, options)
    if machine.processes > 1:
        logger.info(f"{folder.name}: a step is divided among {machine.processes} processes: {share.options()}")
    arguments = [str(data), *options, *_fused_optimizer(folder, options, machine), *share.options()]
    arguments += ["--save-dir", str(folder), "--log-format", "json"]
    arguments += ["--log-interval", str(max(1, min(100, budget.updates // 5)))]
    arguments += ["--finetune-from-model", str(start)] if start is not None else []  # ignored when resuming
    machine.train(arguments, folder / "train.log")
    write_json(folder / FINISHED, {})


def _check_record(path: Path, record: Dict[str, Any]) -> None:
    """Writes the settings of a training, or compares them with those of the existing one."""
    before = read_json(path)
    if before is None:
        write_json(path, record, indent=1)
    elif before != record:
        changed = [name for name in {**record, **before} if before.get(name) != record.get(name)]
        raise InputError(
            f"{path}: the model has other {', '.join(changed).replace('_', ' ')}; remove the folder, or change --output"
        )


def _fused_optimizer(folder: Path, options: List[str], machine: Machine) -> List[str]:
    """Options for Adam in fused kernels, which is faster on GPUs; a resumed training keeps its optimizer."""
    if last_value("--optimizer", options) != "adam":
        return []
    if (folder / LAST).exists():
        from docnmt_fairseq.checkpoints import read_checkpoint  # imports fairseq

        fused = read_checkpoint(folder / LAST)["optimizer_history"][-1]["optimizer_name"] == "FusedAdamW"
    else:
        fused = not machine.cpu
    return ["--optimizer", "fused_adamw"] if fused else []


def updates_of(checkpoint: Path) -> int:
    """Returns the number of updates of a checkpoint, 0 if it does not exist."""
    if not checkpoint.exists():
        return 0
    from docnmt_fairseq.checkpoints import read_checkpoint

    return int(read_checkpoint(checkpoint)["optimizer_history"][-1]["num_updates"])


def translate(
    data: Path,
    split: str,
    folder: Path,
    output: Path,
    model: Model,
    tokens: int,
    joins: Optional[str],
    machine: Machine,
    view: DocumentView = DocumentView(),
) -> None:
    """Writes the output of fairseq-generate for a test set, with the checkpoint of the lowest validation loss.

    Args:
        data: data-bin.
        split: "test", "test1", ….
        folder: folder of the checkpoints.
        output: file to write; error messages go to a file ``.err`` next to it.
        model: trained model.
        tokens: tokens per batch.
        joins: subwords that fairseq joins, as ``--remove-bpe``; None: they are kept.
        machine: device; a single process is used.
        view: document view.

    Raises:
        InputError: it failed.
    """
    command = [*fairseq("generate"), str(data), "--user-dir", str(machine.user_dir), "--task", model.task, "--path"]
    command += [str(folder / BEST), "--gen-subset", split, "--max-tokens", str(tokens)]
    command += [word for name, value in {**SEARCH, **view.given}.items() for word in (flag_of(name), str(value))]
    command += [] if joins is None else ["--remove-bpe", joins]
    command += replace(machine, processes=1).options()
    errors = output.with_suffix(".err")
    with open(partial_path(output), "w", encoding="utf-8") as stream, open(errors, "w", encoding="utf-8") as messages:
        run(command, stream, errors, messages)
    os.replace(partial_path(output), output)
