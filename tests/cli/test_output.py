"""Names of files on command lines, interruption, and start of ``docnmt``."""

import logging
import os
import signal
import subprocess
import sys

import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.cli import score

TEXT = "a b c\n\nd e\n"
SCORE = ["score", "--reference", "ref", "--system", "a=sys"]


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ref", "sys"):
        (tmp_path / name).write_text(TEXT)
    (tmp_path / "link").symlink_to("ref")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (SCORE, "./sys"),
        (SCORE, "link"),
        (["edits", "make", "--translation", "sys", "--edited", "ref"], "sys"),
    ],
)
def test_inputs_are_not_overwritten(command, output, texts, capsys):
    assert cli.main([*command, "--output", output]) == 2
    assert f"--output {output.removeprefix('./')}" in capsys.readouterr().err
    assert {(texts / name).read_text() for name in ("ref", "sys")} == {TEXT}


def test_errors_of_files_are_one_line(capsys):
    assert cli.main(["edits", "make", "--translation", "sys", "--edited", "ref", "--output", "ref/out"]) == 2
    assert capsys.readouterr().err.startswith("docnmt edits: error: ")


def test_errors_of_the_system_are_one_line(monkeypatch, capsys):
    def run(args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(score, "run", run)
    assert cli.main(SCORE) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "docnmt score: error: [Errno 28] No space left on device"


def run(command, **settings):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **settings.pop("environment", {})}
    return subprocess.run([sys.executable, *command], stderr=subprocess.PIPE, text=True, env=environment, **settings)


def test_an_interruption_ends_the_process_by_its_signal():
    code = "import os, signal; from docnmt_fairseq.cli import score, main\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs of shells\n"
    code += "score.run = lambda args: os.kill(os.getpid(), signal.SIGINT)\n"
    ended = run(["-c", f"{code}main({SCORE!r})"])
    assert ended.stderr.splitlines() == ["docnmt: interrupted"] and ended.returncode == -signal.SIGINT


def test_the_parser_needs_neither_fairseq_nor_pytorch():
    code = "import sys; from docnmt_fairseq.cli import build_parser; build_parser()\n"
    code += "sys.exit(bool({'torch', 'fairseq', 'matplotlib', 'omegaconf', 'hydra'} & {*sys.modules}))"
    ended = run(["-c", code])
    assert ended.returncode == 0 and ended.stderr == ""


def test_commands_configure_logging():
    """Otherwise the first import of fairseq would."""
    code = "import logging, sys; from docnmt_fairseq.cli import main; main(sys.argv[1:]); print(logging.root.level)"
    sizes = ["--train-documents", "2", "--valid-documents", "2", "--test-documents", "2"]
    ended = run(["-c", code, "synth", "--output", "synth", *sizes], stdout=subprocess.PIPE)
    assert ended.stdout.split()[-1] == str(logging.INFO) and "INFO:" not in ended.stderr
