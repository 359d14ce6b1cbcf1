"""Trains and translates: a killed training goes on from its last whole checkpoint, to the same result."""

import json
import logging
import os
import shutil
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Optional

import docnmt_fairseq
from docnmt_fairseq.corpus.files import PathLike, atomic_write_bytes, partial_path
from docnmt_fairseq.corpus.steps import sha256
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import flag_of
from docnmt_fairseq.recipes.machines import Machine, last_given
from docnmt_fairseq.recipes.models import COMMON, SEARCH, SMOKE, Model
from docnmt_fairseq.recipes.processes import fairseq, run
from docnmt_fairseq.translate.view import DocumentView

LAST, BEST = "checkpoint_last.pt", "checkpoint_best.pt"
FUSED = "FusedAdamW"  # as checkpoints call --optimizer fused_adamw
ENDED = "ended.json"  # of a training that ended before its last update, as --patience ends it

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Budget:
    """What a model of a recipe gets; see :class:`~docnmt_fairseq.recipes.dataset.Training`.

    Attributes:
        size: of the architecture; empty: those that it has by itself.
    """

    size: str
    updates: int
    batch_tokens: int
    validate_every: int
    options: List[str]
    smoke: bool = False
    common: bool = True


def check_size(model: Model, size: str, option: str) -> None:
    """Refuses a size that the architecture of a model has not.

    Args:
        model: what is to be trained.
        size: as of :class:`Budget`.
        option: how messages begin.
    """
    docnmt_fairseq.register()
    from fairseq.models import ARCH_MODEL_REGISTRY

    from docnmt_fairseq.models.transformer.presets import SIZES

    known = [name for name in SIZES if _architecture(model, name) in ARCH_MODEL_REGISTRY]
    if known and _architecture(model, size) not in ARCH_MODEL_REGISTRY:  # none known: of a package not imported here
        raise InputError(f"{option} {size}: {model.arch} has no such size, but {', '.join(known)}")


def _architecture(model: Model, size: str) -> str:
    return "_".join(filter(None, (model.arch, size)))


def training_options(model: Model, budget: Budget, seed: int, begins: bool = False) -> List[str]:
    """What a trained model depends on beside its data, its batches' tokens and the weights it begins with.

    Args:
        model, budget, seed: what to train.
        begins: with the weights of a sentence-level model; else from scratch.
    """
    every = str(min(budget.validate_every, budget.updates))
    return [
        "--task", model.task, "--arch", _architecture(model, budget.size), "--seed", str(seed),
        "--max-update", str(budget.updates), "--validate-interval-updates", every,
        "--save-interval-updates", every, "--keep-interval-updates", "1", "--no-epoch-checkpoints",
        *(COMMON if budget.common else []), *([] if begins else model.from_scratch), *budget.options,
        *(SMOKE if budget.smoke else []),
        *model.options(budget.updates), *(model.to_begin if begins else []),
    ]  # fmt: skip


def train(
    data: PathLike,
    folder: Path,
    model: Model,
    budget: Budget,
    seed: int,
    machine: Machine,
    signature: str,
    start: Optional[Path] = None,
) -> None:
    """Trains a model in a folder, or goes on with it; does nothing if it has all its updates.

    Args:
        data: the data-bin; several, with colons between, are taken in turn.
        folder: of checkpoints and ``train.log``.
        model, budget, seed: what to train.
        machine: on what; a step is shared out to all processes.
        signature: stands for the data.
        start: checkpoint of a sentence-level model that it begins as; None: with its initialisation.

    Raises:
        InputError: the folder holds a model of other options or data, or one that began otherwise; the training failed.
    """
    options = training_options(model, budget, seed, begins=start is not None)
    tokens = model.sentences * budget.batch_tokens
    record = {"options": options, "batch_tokens": tokens, "data": signature}
    if start is not None:
        record["initial_weights"] = sha256(start)
    _check_record(folder / "training.json", record)
    restore_last_checkpoint(folder)
    if updates_of(folder / LAST) < budget.updates and not (folder / ENDED).exists():
        share = machine.share(tokens, options)
        if machine.all_processes > 1:
            logger.info(f"{folder.name}: a step is that of one process; of {machine.all_processes}, each: {share}")
        kernels = optimizer_options(options, machine, folder / LAST)
        arguments = [str(data), *options, *kernels, *share.options(), "--save-dir", str(folder)]
        arguments += ["--log-format", "json", "--log-interval", str(max(1, min(100, budget.updates // 5)))]
        arguments += ["--finetune-from-model", str(start)] if start is not None else []  # not where it goes on
        machine.train(arguments, folder / "train.log")
        done = updates_of(folder / LAST)
        if 0 < done < budget.updates:  # e.g. --patience, whose count fairseq does not keep: it would train on
            logger.warning(f"{folder}: the training ended after {done:,} updates")
            atomic_write_bytes(folder / ENDED, f'{{"updates": {done}}}\n'.encode())


def optimizer_options(options: List[str], machine: Machine, last: Path) -> List[str]:
    """Adam in fused kernels for GPUs, which otherwise start some for each parameter; a training goes on as it began.

    Args:
        options: of the training.
        machine: on what.
        last: its checkpoint, if it has one.
    """
    if last_given("--optimizer", options) != "adam":
        return []
    began = _last_run(last)
    fused = began["optimizer_name"] == FUSED if began else not machine.cpu
    return ["--optimizer", "fused_adamw"] if fused else []


def _check_record(path: Path, record: Dict[str, Any]) -> None:
    """Writes what is being trained, or compares it with what was."""
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [name for name in {**record, **before} if before.get(name) != record.get(name)]
        if changed:
            raise InputError(
                f"{path.parent}: holds a model of other {' and '.join(changed).replace('_', ' ')} (training.json); "
                "remove the folder, or give another --output"
            )
    atomic_write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())


def restore_last_checkpoint(folder: Path) -> None:
    """Makes ``checkpoint_last.pt`` whole again, from the newest whole checkpoint, or removes it.

    fairseq writes one checkpoint and then copies it; a training that is killed while it does leaves half a copy.
    """
    last = folder / LAST
    if not last.exists() or zipfile.is_zipfile(last):  # the end of the file is its table of contents
        return
    whole = [path for path in folder.glob("checkpoint*.pt") if zipfile.is_zipfile(path)]
    if not whole:
        last.unlink()
        return
    newest = max(whole, key=updates_of)
    logger.info(f"{last}: is half a copy; taking {newest.name} instead")
    shutil.copyfile(newest, partial_path(last))
    os.replace(partial_path(last), last)


def updates_of(checkpoint: Path) -> int:
    """The updates that a checkpoint has seen, 0 if there is none.

    From its last checkpoint fairseq would train one update more than ``--max-update``.
    """
    return int(_last_run(checkpoint).get("num_updates", 0))


def _last_run(checkpoint: Path) -> Dict[str, Any]:
    """What fairseq notes of the run that wrote a checkpoint; empty, if there is none."""
    if not checkpoint.exists():
        return {}
    from docnmt_fairseq.checkpoints import read_checkpoint  # imports fairseq, which every docnmt command would wait for

    return dict(read_checkpoint(checkpoint)["optimizer_history"][-1])


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
    """Writes what fairseq-generate prints for a test set, with the checkpoint of the lowest validation loss.

    Args:
        data: the data-bin.
        split: "test", "test1", ...
        folder: with the checkpoints.
        output: file to write; messages go beside it, into a file ``.err``.
        model: what was trained.
        tokens: of a batch.
        joins: how fairseq joins subwords; None: they are left.
        machine: on what; one process does it.
        view: of documents.

    Raises:
        InputError: it failed.
    """
    command = [*fairseq("generate"), str(data), "--user-dir", str(machine.user_dir), "--task", model.task, "--path"]
    command += [str(folder / BEST), "--gen-subset", split, "--max-tokens", str(tokens)]
    told = {**SEARCH, **view.given}
    command += [word for name, value in told.items() for word in (flag_of(name), str(value))]
    command += [] if joins is None else ["--remove-bpe", joins]
    command += replace(machine, processes=1, group=None).options()
    errors = output.with_suffix(".err")
    with open(partial_path(output), "w", encoding="utf-8") as stream, open(errors, "w", encoding="utf-8") as messages:
        run(command, stream, errors, messages)
    os.replace(partial_path(output), output)
