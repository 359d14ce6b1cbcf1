"""Several processes equal one."""

import subprocess
import sys

import pytest
import torch

from tests.support import toy

# Plain gradient descent: a step is proportional to the gradient, so equal gradients are equal steps. Adam divides each
# gradient by its own size, and makes whole steps of what is rounding alone, e.g. of the keys' biases, whose true
# gradient is zero.
UPDATES = ["--context-attention", "conditional", "--context-top-t", "2", "--max-update", "4"]
UPDATES += ["--optimizer", "sgd", "--lr", "0.5", "--clip-norm", "0"]
# What float32 leaves of sums in another order: 4 steps of lr 0.5 with gradients below 1.
ROUNDING = {"atol": 1e-6, "rtol": 1e-5}


pytestmark = pytest.mark.usefixtures("starts_soon")

# The selection's loss is a sum over tokens, and what all processes find decides when narrowing begins.
TAUGHT = ["--selection-loss", "0.5", "--selection-loss-phase", "always", "--context-init", "xavier"]
TAUGHT += ["--context-top-t-anneal-start", "2", "--context-top-t-anneal-threshold", "0.5"]


def train_in_two_processes(data_bin, folder, backend, options):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "fairseq_cli.train"]
    fixed = ["--save-dir", str(folder), "--disable-validation", "--distributed-backend", "gloo"]
    fixed += ["--ddp-backend", backend, *UPDATES, *options]
    result = subprocess.run([*command, *toy.arguments(data_bin, *fixed)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder / "checkpoint_last.pt"


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "options"), [("legacy_ddp", []), ("pytorch_ddp", []), ("pytorch_ddp", TAUGHT)])
def test_two_processes_equal_one_with_twice_the_batches(data_bin, tmp_path, backend, options):
    one = toy.train(data_bin, tmp_path / "one", *UPDATES, *options, "--update-freq", "2")
    two = train_in_two_processes(data_bin, tmp_path / "two", backend, options)
    state = toy.assert_same_state(one, two, **ROUNDING)
    half = toy.state(toy.train(data_bin, tmp_path / "half", *UPDATES, *options, "--update-freq", "1"))
    learnt = [name for name in state if name.endswith("weight") and ".context." not in name]  # whose gate opens slowly
    alike = [name for name in learnt if torch.allclose(state[name], half[name], **ROUNDING)]
    assert not alike, "half the batches make other steps: the comparison above can fail"


@pytest.mark.slow
def test_dropped_layers_train_in_several_processes(data_bin, tmp_path):
    """With dropout the processes leave different layers out, of which one would have handed in a loss."""
    options = [*TAUGHT, "--encoder-layerdrop", "0.5", "--decoder-layerdrop", "0.3", "--dropout", "0.2"]
    plain, legacy = (
        train_in_two_processes(data_bin, tmp_path / backend, backend, options)
        for backend in ("pytorch_ddp", "legacy_ddp")
    )
    toy.assert_same_state(plain, legacy, **ROUNDING)
