"""Commands whose output nobody reads or no disk takes, and that are interrupted, end with one line."""

import os
import signal
import subprocess
import sys

import pytest

from docnmt_fairseq import cli

COMMAND = [sys.executable, "-m", "docnmt_fairseq", "score", "--reference", "text", "--system", "a=text"]


@pytest.mark.parametrize(("output", "reason"), [("/dev/full", "No space left on device"), (None, "Broken pipe")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_cannot_be_written(tmp_path, output, reason, unbuffered):
    (tmp_path / "text").write_text("a b\n")
    if output is None:
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(output, os.O_WRONLY)
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONPATH": os.getcwd()}
    ended = subprocess.run(COMMAND, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(writer)
    lines = [line for line in ended.stderr.splitlines() if " | " not in line]
    assert lines == [f"docnmt score: error: standard output: cannot be written: {reason}"]
    assert ended.returncode == 2


def test_an_interruption_ends_the_process_by_its_signal(tmp_path):
    code = "import os, signal; from docnmt_fairseq.cli import score, main\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored\n"
    code += "score.run = lambda args: os.kill(os.getpid(), signal.SIGINT)\n"
    code += "main(['score', '--reference', 'text', '--system', 'a=text'])"
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert ended.stderr.splitlines() == ["docnmt: interrupted"] and ended.returncode == -signal.SIGINT


def test_what_is_printed_goes_to_standard_output_of_the_moment(tmp_path, capsys):
    (tmp_path / "text").write_text("a b\n")
    assert cli.main(["score", "--reference", str(tmp_path / "text"), "--system", f"a={tmp_path / 'text'}"]) == 0
    assert "BLEU" in capsys.readouterr().out


def test_an_encoding_that_lacks_characters_is_named(tmp_path):
    (tmp_path / "ref").write_text("Käse\n", encoding="utf-8")
    (tmp_path / "sys").write_text("x\n")
    command = [sys.executable, "-m", "docnmt_fairseq", "compare", "--reference", "ref", "--system", "a=sys"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.getcwd()}
    ended = subprocess.run(
        [*command, "--system", "b=ref"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert "docnmt compare: error: standard output: ascii cannot encode '\\xe4'; set PYTHON" in ended.stderr
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
