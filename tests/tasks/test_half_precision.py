"""--bf16 on a CPU: weights in float32, products in bfloat16."""

import re
import subprocess
import sys

import pytest
import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from tests.support import toy

NARROW = [
    "--context-top-t",
    "2",
    "--context-narrow-from",
    "3",
    "--selection-loss",
    "1",
    "--selection-loss-phase",
    "dense",
]
OPTIONS = {"conditional": NARROW, "tree": [*NARROW, "--tree-order", "keys", "--tree-merge", "average"]}
ROUNDING = 2**-7  # of a bfloat16, relative: the losses of a few updates from one start


def fairseq_train(data_bin, folder, *extra):
    """Returns the losses that the command itself prints."""
    fixed = ["--optimizer", "adam", "--lr", "0.01", "--save-dir", str(folder), "--disable-validation"]
    fixed += ["--max-update", "3", "--log-interval", "1", "--log-format", "simple", "--no-save", *extra]
    command = [sys.executable, "-m", "fairseq_cli.train", *toy.arguments(data_bin, *fixed)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return [float(loss) for loss in re.findall(r"train_inner .* loss=([\d.]+)", result.stdout + result.stderr)]


def test_the_command_line_trains_in_bf16_on_a_cpu(data_bin, tmp_path):
    half, full = (fairseq_train(data_bin, tmp_path / "model", *extra) for extra in (["--bf16"], []))
    assert len(half) == 3 and half != full
    assert half == pytest.approx(full, rel=ROUNDING)


@pytest.mark.parametrize("mechanism", ["none", *(name for name in CONTEXT_MECHANISMS.names() if name != "none")])
def test_every_mechanism_learns_in_bf16(data_bin, tmp_path, mechanism):
    fixed = ["--context-attention", mechanism, "--max-update", "5", *OPTIONS.get(mechanism, [])]
    half, full = (
        toy.train(data_bin, tmp_path / name, *fixed, *extra) for name, extra in (("half", ["--bf16"]), ("full", []))
    )
    learnt, exact = (torch.load(one, weights_only=toy.compat.SAFE_LOADER)["model"] for one in (half, full))
    assert learnt.keys() == exact.keys()
    assert all(value.isfinite().all() for value in learnt.values())
    assert toy.validate(data_bin, half) == pytest.approx(toy.validate(data_bin, full), rel=4 * ROUNDING)
