"""fairseq's commands that load a model say in one line what is wrong with its options."""

import sys

import pytest

from docnmt_fairseq import compat  # noqa: F401  (changes fairseq)
from docnmt_fairseq.errors import InputError


@pytest.mark.parametrize("command", ["generate", "interactive"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "--path: not given; name the checkpoint"),
        (["--path", "{0}:nowhere.pt"], "--path nowhere.pt: no such file; name the checkpoint"),
        (["--path", "{0}", "--model-overrides", "dropout=0"], "--model-overrides dropout=0: is no dictionary"),
        (["--path", "{0}", "--model-overrides", "[1]"], r"--model-overrides \[1\]: is no dictionary"),
        (["--path", "{0}", "--beam", "0"], "--beam 0: must be at least 1"),
    ],
)
@pytest.mark.sampled(1)
def test_options_that_nothing_can_be_loaded_with(tmp_path, monkeypatch, command, given, message):
    module = pytest.importorskip(f"fairseq_cli.{command}")
    (tmp_path / "model.pt").touch()
    options = [word.format(tmp_path / "model.pt") for word in given]
    monkeypatch.setattr(sys, "argv", [command, str(tmp_path), *options])
    with pytest.raises(InputError, match=message):
        module.cli_main()
