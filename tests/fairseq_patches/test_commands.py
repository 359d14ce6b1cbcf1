"""One-line errors of fairseq's commands."""

import subprocess
import sys

import pytest

from docnmt_fairseq.errors import InputError
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
