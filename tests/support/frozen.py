"""Checkpoints of earlier versions, a family of models each, and what they said when they were made.

``python -m tests.support.frozen`` makes those of the present version: once a release, beside what is there already.
"""

import json
import logging
import tempfile
from argparse import Namespace
from pathlib import Path

import torch

from docnmt_fairseq import compat
from tests.support import toy

FOLDER = Path(__file__).parent.parent / "frozen"
DATA_BIN = FOLDER / "data-bin"
UPDATES = 40  # of the frozen checkpoints
MORE = 3  # updates after which a resumed training is compared
TASKS = {"concatenation": "concatenated_translation"}  # by the beginning of a family's name; else document_translation
TRAINING = ["--max-update", str(UPDATES), "--seed", "3", "--lr-scheduler", "fixed", "--keep-last-epochs", "0"]
TRAINING += ["--no-epoch-checkpoints", "--clip-norm", "1"]
SEARCH = ["--beam", "3", "--max-len-b", "10"]


def families(version):
    """Returns the names of the frozen families of a version."""
    return sorted(path.name for path in (FOLDER / version).iterdir() if path.is_dir())


def versions():
    """Returns the versions that have frozen checkpoints."""
    return sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path != DATA_BIN)


def task_of(family):
    return next((task for begin, task in TASKS.items() if family.startswith(begin)), "document_translation")


def observed(checkpoint, family):
    """Returns what a checkpoint says: translations with their scores, and the validation loss."""
    task = task_of(family)
    found = toy.generate(DATA_BIN, checkpoint, *SEARCH, task=task).hypotheses
    loss = toy.validation(DATA_BIN, checkpoint, task=task)["loss"]
    return {"translations": {str(number): list(found[number]) for number in sorted(found)}, "loss": loss}


def options_of(folder):
    return json.loads((folder / "options.json").read_text())


def train(family, options, save_dir, updates=UPDATES):
    """Trains a family's model, or goes on with one that is in ``save_dir``; returns the checkpoint."""
    options = [*TRAINING, *options, "--max-update", str(updates)]
    named = {"arch": options[options.index("--arch") + 1]} if "--arch" in options else {}
    tiny = toy.TINY if named.get("arch", "document_transformer") == "document_transformer" else []
    tiny = toy.TINY if family.startswith("concatenation") else tiny
    return toy.train(DATA_BIN, save_dir, *options, task=task_of(family), tiny=tiny, **named)


def copy_without_paths(checkpoint, target):
    """Copies a checkpoint; what its configuration says about folders of this machine is replaced."""
    state = torch.load(checkpoint, weights_only=compat.SAFE_LOADER)
    here = {"data": "data-bin", "user_dir": "docnmt_fairseq", "save_dir": "checkpoints", "path": None}
    for part in (state["cfg"][name] for name in ("model", "task", "common", "checkpoint")):
        for name, value in here.items():
            if isinstance(part, Namespace):
                if hasattr(part, name):
                    setattr(part, name, value)
            elif name in part:
                part[name] = value
    torch.save(state, target)


def freeze(version, families_):
    """Makes the frozen checkpoints of a version.

    Args:
        version: names the folder.
        families_: options of the training by family.
    """
    logging.disable(logging.INFO)
    for family, options in families_.items():
        folder = FOLDER / version / family
        folder.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as temporary:
            checkpoint = train(family, options, temporary)
            copy_without_paths(checkpoint, folder / "checkpoint.pt")
            expected = observed(checkpoint, family)
            resumed = train(family, options, temporary, UPDATES + MORE)
            expected["resumed_loss"] = observed(resumed, family)["loss"]
        (folder / "options.json").write_text(json.dumps(options) + "\n")
        (folder / "expected.json").write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
        print(family, expected["loss"], expected["resumed_loss"], (folder / "checkpoint.pt").stat().st_size)
