"""One-line errors of fairseq's commands."""

import subprocess
import sys
from contextlib import nullcontext

import pytest
from fairseq.dataclass.configs import DistributedTrainingConfig

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.fairseq_patches import commands
from docnmt_fairseq.fairseq_patches.commands import print_one_line
from tests.support import toy


@pytest.mark.slow
def test_a_fairseq_command_ends_with_one_line(tmp_path):
    command = [sys.executable, "-m", "fairseq_cli.train", *toy.arguments(tmp_path / "none"), "--optimizer", "adam"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("train.py: error: ")


@pytest.fixture
def hook():
    """Exception hook, and the errors that it passes on to Python's."""
    passed_on = []
    return print_one_line(lambda kind, error, traceback: passed_on.append(error)), passed_on


def test_other_programs_show_a_traceback(hook, capsys):
    show, passed_on = hook
    with pytest.raises(InputError) as found:
        raise InputError("wrong")
    show(found.type, found.value, found.tb)
    assert passed_on == [found.value] and not capsys.readouterr().err


def test_input_errors_are_one_line(hook, capsys, monkeypatch, tmp_path):
    from fairseq_cli import train

    show, passed_on = hook
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train", *toy.arguments(tmp_path), "--optimizer", "adam"])
    with pytest.raises(InputError) as found:
        train.cli_main()
    show(found.type, found.value, found.tb)
    assert not passed_on and capsys.readouterr().err.startswith("fairseq-train: error: ")


@pytest.mark.parametrize(
    ("world_size", "port", "environment", "refused"),
    [
        (2, 29712, {}, True),
        (9999, 0, {}, True),
        (1, 29712, {}, False),
        (9999, 29712, {"SLURM_JOB_NODELIST": "n1"}, False),
        (9999, 0, {"MASTER_ADDR": "localhost", "MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "9999"}, False),
    ],
)
def test_processes_that_cannot_be_started(monkeypatch, world_size, port, environment, refused):
    for name in (*commands.SLURM, *commands.TORCHRUN):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cfg = DistributedTrainingConfig(distributed_world_size=world_size, distributed_port=port, tpu=False)
    started = []
    start = commands.join_torchrun(lambda cfg, force: started.append(cfg))
    with pytest.raises(InputError) if refused else nullcontext():
        start(cfg)
    assert started == ([] if refused else [cfg])
