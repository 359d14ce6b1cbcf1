"""``docnmt`` starts at once and logs as itself: fairseq, which takes seconds, comes in where a command needs it."""

import logging
import subprocess
import sys

from docnmt_fairseq.cli import main

PROGRAM = """
import sys
from docnmt_fairseq.cli import build_parser, command_modules
build_parser()
assert {"recipe", "prepare", "score"} <= {*command_modules()}
print(*[name for name in ("torch", "fairseq", "matplotlib", "omegaconf", "hydra") if name in sys.modules])
"""


def test_the_parser_needs_neither_fairseq_nor_pytorch():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "" and result.stderr == ""


def test_a_command_sets_up_logging_itself(tmp_path):
    """Who imports fairseq first finds it set up by fairseq, and sees what matplotlib debugs."""
    program = "import logging, sys; from docnmt_fairseq.cli import main; main(sys.argv[1:]); print(logging.root.level)"
    sizes = ["--train-documents", "2", "--valid-documents", "2", "--test-documents", "2"]
    command = [sys.executable, "-c", program, "synth", "--output", str(tmp_path), *sizes]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split()[-1] == str(logging.INFO) and "INFO:" not in result.stderr


def test_an_option_that_there_is_not_is_told_by_the_command(capsys):
    assert main(["prepare", "-s", "en", "-t", "de", "--output", "x", "--trian", "y"]) == 2
    assert capsys.readouterr().err == "docnmt prepare: error: unrecognized arguments: --trian y\n"
