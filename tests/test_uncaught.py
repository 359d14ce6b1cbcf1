"""fairseq's commands say what is wrong in one line; other programs show where they fail."""

import subprocess
import sys

import pytest
from omegaconf import MissingMandatoryValue

from docnmt_fairseq import uncaught
from docnmt_fairseq.errors import InputError
from tests.support import toy


def test_a_command_ends_with_one_line(tmp_path):
    command = [sys.executable, "-m", "fairseq_cli.train", *toy.arguments(tmp_path / "none"), "--optimizer", "adam"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    told = "error: .*none: no such folder; give the data-bin that docnmt prepare wrote"
    assert ended.stderr.splitlines()[-1] == f"train.py: {told}".replace(".*none", str(tmp_path / "none"))


@pytest.fixture
def shown(monkeypatch):
    """What is shown as Python shows it."""
    errors = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: errors.append(error))
    uncaught.patch_fairseq()
    return errors


def test_a_program_of_ones_own_shows_where_it_fails(shown, capsys):
    with pytest.raises(InputError) as found:
        raise InputError("wrong")
    sys.excepthook(found.type, found.value, found.tb)
    assert shown == [found.value] and not capsys.readouterr().err


def test_what_fairseq_asserts_of_options_is_one_line(shown, capsys, monkeypatch, data_bin):
    from fairseq_cli import generate

    given = ["--sampling", "--beam", "2", "--path", str(data_bin / "dict.src.txt")]
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-generate", str(data_bin), *given])
    with pytest.raises(AssertionError) as found:
        generate.cli_main()
    sys.excepthook(found.type, found.value, found.tb)
    told = "fairseq-generate: error: --sampling requires --nbest to be equal to --beam\n"
    assert not shown and capsys.readouterr().err.endswith(told)


def test_what_fairseq_refuses_together_is_one_line(shown, capsys, monkeypatch, data_bin, tmp_path):
    from fairseq_cli import train

    given = ["--optimizer", "adam", "--lr-scheduler", "inverse_sqrt", "--lr", "0.1,0.2", "--save-dir", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train", *toy.arguments(data_bin, *given)])
    with pytest.raises(ValueError, match="--lr-scheduler") as found:
        train.cli_main()
    sys.excepthook(found.type, found.value, found.tb)
    assert not shown and "fairseq-train: error: Cannot use a fixed learning rate" in capsys.readouterr().err


def test_an_option_that_another_one_needs_is_one_line(shown, capsys, monkeypatch, data_bin, tmp_path):
    from fairseq_cli import generate

    trained = toy.train(data_bin, tmp_path, "--max-update", "1")
    given = toy.translating(data_bin, trained, "document_translation")
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-generate", *given, "--bpe", "sentencepiece"])
    with pytest.raises(MissingMandatoryValue) as found:
        generate.cli_main()
    sys.excepthook(found.type, found.value, found.tb)
    assert not shown
    assert capsys.readouterr().err.endswith("fairseq-generate: error: --sentencepiece-model: not given\n")


def test_typed_text_of_another_encoding_is_one_line(shown, capsys, monkeypatch, data_bin, tmp_path):
    from fairseq_cli import interactive

    trained = toy.train(data_bin, tmp_path, "--max-update", "1")
    (tmp_path / "latin1.txt").write_text("für\n", encoding="latin-1")
    given = [*toy.translating(data_bin, trained, "document_translation"), "--input", str(tmp_path / "latin1.txt")]
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-interactive", *given])
    with pytest.raises(UnicodeDecodeError) as found:
        interactive.cli_main()
    sys.excepthook(found.type, found.value, found.tb)
    told = "fairseq-interactive: error: the input is no UTF-8 (byte 0xfc); convert it, e.g. with iconv\n"
    assert not shown and capsys.readouterr().err.endswith(told)


def test_so_does_a_command_that_fails_otherwise(shown, capsys):
    from fairseq_cli import train

    with pytest.raises(AttributeError) as found:
        train.main(None)
    sys.excepthook(found.type, found.value, found.tb)
    assert shown == [found.value] and not capsys.readouterr().err
