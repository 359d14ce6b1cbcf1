"""Trainings that are asked by a signal to end: what they save, validate and tell, and how they go on."""

import contextlib
import signal

import pytest

from docnmt_fairseq import stopping
from docnmt_fairseq.stopping import REQUEST, STATUS
from tests.support import toy
from tests.support.checkpoints import best_loss, saved, updates
from tests.support.documents import SEVEN, write_data_bin


@pytest.mark.parametrize(("option", "status"), [("--no-last-checkpoints", STATUS), ("--no-save", 1)])
def test_who_is_asked_to_end_saves_if_anything_may_be_saved(data_bin, tmp_path, monkeypatch, option, status):
    monkeypatch.setattr(REQUEST, "tell", lambda log: log.update(asked_to_end=1.0))
    with pytest.raises(SystemExit, match=f"^{status}$"):
        toy.train(data_bin, tmp_path, "--max-update", "9", option)
    assert (tmp_path / "checkpoint_last.pt").exists() == (option != "--no-save")


def test_who_is_asked_to_end_is_told_by_which_command_to_go_on(data_bin, tmp_path, monkeypatch):
    """Another checkpoint to begin from, or something to begin anew with, would be so each time."""
    begun = toy.train(data_bin, tmp_path / "begun", "--max-update", "1")
    said, last = [], tmp_path / "last" / "checkpoint_last.pt"
    monkeypatch.setattr(REQUEST, "tell", lambda log: log.update(asked_to_end=1.0))
    monkeypatch.setattr(stopping.logger, "info", said.append)
    anew = ["--restore-file", str(begun), "--reset-optimizer", "--reset-meters"]
    for name, options in {"other": anew, "last": ["--restore-file", str(last)], "none": []}.items():
        with pytest.raises(SystemExit):
            toy.train(data_bin, tmp_path / name, "--max-update", "9", *options)
    saved = "asked to end: saved at 1 updates; the same command"
    without = f" without --restore-file {begun} and --reset-optimizer and --reset-meters"
    assert said == [f"{saved}{without} goes on", f"{saved} goes on", f"{saved} goes on"]


def asked_at(monkeypatch, number):
    """The update of this number hears the signal; gives what all updates said."""
    tell, told = REQUEST.tell, []

    def asked(log):
        told.append(log)
        REQUEST.received = signal.SIGUSR1 if len(told) == number else None
        tell(log)

    monkeypatch.setattr(REQUEST, "tell", asked)
    return told


@pytest.mark.parametrize("more", [[], ["--no-last-checkpoints"]], ids=["last", "no last"])
@pytest.mark.parametrize(
    ("number", "best"),
    [(6, 6), (4, 4), (5, 4), (9, 9)],
    ids=["at a validation", "at an epoch's end", "between", "at the end"],
)
def test_an_update_at_which_a_training_is_asked_to_end_is_validated(
    data_bin, tmp_path, monkeypatch, number, best, more
):
    """The best checkpoint is the one of the training that nobody asked; at its end it just ends. The loss falls."""
    often = ["--validate-interval-updates", "3", "--save-interval-updates", "3", "--valid-subset", "train", *more]
    often += ["--max-update", "9"]
    toy.train(data_bin, tmp_path / "whole", *often)
    told = asked_at(monkeypatch, number)
    with contextlib.nullcontext() if number == 9 else pytest.raises(SystemExit, match=f"^{STATUS}$"):
        toy.train(data_bin, tmp_path / "parts", *often)
    assert len(told) == number
    whole, parts = (tmp_path / name / "checkpoint_best.pt" for name in ("whole", "parts"))
    assert updates(parts) == best
    if number < 9:
        assert best_loss(tmp_path / "parts" / "checkpoint_last.pt") == best_loss(parts)
    toy.train(data_bin, tmp_path / "parts", *often)
    toy.assert_same_state(parts, whole, 0, 0)
    assert updates(parts) == 9 == len(told)


@pytest.mark.parametrize("number", [18, 5, 20, 25], ids=["boundary", "middle", "in the second", "at its end"])
def test_a_training_of_several_data_bins_that_is_asked_to_end_goes_on_there(data_bin, tmp_path, monkeypatch, number):
    (tmp_path / "seven").mkdir()
    seven = write_data_bin(tmp_path / "seven", SEVEN, "--srcdict", str(data_bin / "dict.src.txt"))
    data, options = f"{data_bin}:{seven}", ["--batch-size", "1", "--max-update", "29", "--lr", "0.001"]
    whole = toy.train(data, tmp_path / "whole", *options)
    told = asked_at(monkeypatch, number)
    with pytest.raises(SystemExit, match=str(STATUS)):
        toy.train(data, tmp_path / "parts", *options)
    assert saved(tmp_path / "parts")[1] == number
    parts = toy.train(data, tmp_path / "parts", *options)
    assert len(told) == 29 and saved(tmp_path / "parts") == saved(tmp_path / "whole")
    toy.assert_same_state(parts, whole, 0, 0)
