"""Several processes train as one process does."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
import torch
from fairseq.trainer import Trainer

from tests.support import toy
from tests.support.architectures import ARCHITECTURES
from tests.support.checkpoints import saved, updates
from tests.support.nodes import agents, ended, training

# Gradient descent makes equal steps of equal gradients. Adam divides gradients by their size, and makes whole steps of
# rounding where the true gradient is zero, such as that of key biases.
SGD = ["--optimizer", "sgd", "--lr", "0.5", "--clip-norm", "0"]
ROUNDING = {"atol": 2e-6, "rtol": 1e-5}  # sums of float32 in another order

UPDATES = ["--context-attention", "conditional", "--context-top-t", "2", "--max-update", "4", *SGD]
# The selection loss is a sum over tokens, and the mass over all processes starts the annealing.
SELECTION = ["--selection-loss", "0.5", "--selection-loss-phase", "always", "--context-init", "xavier"]
SELECTION += ["--context-top-t-anneal-start", "2", "--context-top-t-anneal-threshold", "0.5"]


def after_one_update(data_bin, folder, *more):
    """Log and parameters of an update with one batch and ``more``."""
    torch.manual_seed(1)
    cfg, task, model = toy.build(data_bin, *SGD, "--dropout", "0", "--update-freq", "2", "--save-dir", str(folder))
    task.load_dataset("test")
    trainer = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    batch = toy.batch_of(task)
    trainer.reset_dummy_batch(batch)
    log = trainer.train_step([batch, *more])
    return log, [parameter.detach().clone() for parameter in model.parameters()]


def test_a_missing_batch_changes_nothing(data_bin, tmp_path):
    log, parameters = after_one_update(data_bin, tmp_path)
    other_log, others = after_one_update(data_bin, tmp_path, {})
    assert other_log["loss"] == pytest.approx(log["loss"]) and log["loss"] > 1
    torch.testing.assert_close(others, parameters)


def train_in_two_processes(data_bin, folder, backend, options):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m", "fairseq_cli.train"]
    fixed = ["--save-dir", str(folder), "--disable-validation", "--distributed-backend", "gloo"]
    fixed += ["--ddp-backend", backend, *UPDATES, *options]
    result = subprocess.run([*command, *toy.arguments(data_bin, *fixed)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder / "checkpoint_last.pt"


@pytest.mark.slow
@pytest.mark.usefixtures("starts_soon")
@pytest.mark.parametrize(("backend", "options"), [("legacy_ddp", []), ("pytorch_ddp", SELECTION)])
def test_two_processes_equal_one_with_twice_the_batches(data_bin, tmp_path, backend, options):
    one = toy.train(data_bin, tmp_path / "one", *UPDATES, *options, "--update-freq", "2")
    two = train_in_two_processes(data_bin, tmp_path / "two", backend, options)
    toy.assert_same_state(one, two, **ROUNDING)


@pytest.mark.slow
@pytest.mark.usefixtures("starts_soon")
def test_layerdrop_in_several_processes(data_bin, tmp_path):
    """With dropout the processes leave out different layers, one of which has an auxiliary loss."""
    options = [*SELECTION, "--encoder-layerdrop", "0.5", "--decoder-layerdrop", "0.3", "--dropout", "0.2"]
    plain = train_in_two_processes(data_bin, tmp_path / "plain", "pytorch_ddp", [*options, "--find-unused-parameters"])
    legacy = train_in_two_processes(data_bin, tmp_path / "legacy", "legacy_ddp", options)
    toy.assert_same_state(plain, legacy, **ROUNDING)


MODELS = ["conditional, block", "tree by keys", "target han", "rnn gru"]


@pytest.mark.slow
@pytest.mark.usefixtures("starts_soon")
def test_four_processes_on_two_nodes_equal_one(data_bin, tmp_path):
    """Trains all models in one start of four processes, which takes longer than the trainings."""
    options = ["--max-update", "3", "--lr", "0.1"]  # at 0.5 some models diverge, and rounding with them
    models = {name: ARCHITECTURES[name] for name in MODELS}
    commands = []
    for name, model in models.items():
        commands.append(training(data_bin, tmp_path / "four" / name, *model.options, *options, **model.kind))
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    four = agents(2, 2, ["-m", "tests.support.many_trainings", str(tmp_path / "commands.json")])
    for name, model in models.items():
        more = [*SGD, *model.options, *options, "--update-freq", "4"]
        toy.train(data_bin, tmp_path / "one" / name, *more, **model.kind)
    ended(four)
    for name in models:
        one, other = (toy.state(tmp_path / place / name / "checkpoint_last.pt") for place in ("one", "four"))
        for key in one:
            torch.testing.assert_close(other[key], one[key], **ROUNDING, msg=f"{name}: {key}")
        assert updates(tmp_path / "four" / name / "checkpoint_last.pt") == 3


@pytest.mark.slow
def test_a_signal_to_one_process_ends_all_after_the_same_update(data_bin, tmp_path):
    options = ["--max-update", "400", "--batch-size", "1", "--log-interval", "1", "--log-format", "json"]
    command = ["-m", "fairseq_cli.train", *training(data_bin, tmp_path, *options, "--lr", "0.001")]
    (agent,) = agents(1, 2, command)
    for line in agent.stdout:
        found = re.search(r'"num_updates": "(\d+)"', line)
        if found and int(found[1]) >= 7:
            break
    workers = subprocess.run(["pgrep", "-P", str(agent.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(workers[-1]), signal.SIGUSR1)
    printed = agent.communicate()[0]
    place, number = saved(tmp_path)
    assert "stopped by a signal: saved at" in printed and 7 <= number < 400
    assert 9 * (place["epoch"] - 1) + place["iterations_in_epoch"] == number
