"""Trainings that a signal ends, finished trainings, and parameter groups."""

import contextlib
import os
import signal

import pytest
import torch

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.fairseq_patches.training import (
    EXIT_STATUS,
    LR_SCALE,
    PREEMPTED,
    PREEMPTION,
    Preemption,
    divide_parameters,
)
from docnmt_fairseq.optim.fused_adamw import FusedAdamW, FusedAdamWConfig
from tests.support import toy
from tests.support.checkpoints import best_loss, updates

SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)


@pytest.fixture
def unhandled():
    """Signals that reached no training; handlers are restored afterwards."""
    found = []
    before = {number: signal.signal(number, lambda number, frame: found.append(number)) for number in SIGNALS}
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("names", "handled"), [("USR1", SIGNALS[:1]), ("USR1, TERM", (SIGNALS[0], SIGNALS[2])), ("", ())]
)
def test_the_given_signals_are_handled(unhandled, names, handled):
    for number in SIGNALS:
        preemption, log = Preemption(), {}
        preemption.listen(names)
        os.kill(os.getpid(), number)
        preemption.report(log)
        assert log == {PREEMPTED: float(number in handled)}
    assert unhandled == [number for number in SIGNALS if number not in handled]


def test_one_preempted_process_is_enough():
    preemption = Preemption()
    for logs, agreed in (([{PREEMPTED: 0.0}, {}], False), ([{PREEMPTED: 0.0}, {PREEMPTED: 1.0}], True), ([{}], True)):
        preemption.agree(logs)
        assert preemption.agreed is agreed


@pytest.mark.parametrize(("option", "status"), [("--no-last-checkpoints", EXIT_STATUS), ("--no-save", 1)])
def test_a_preempted_training_saves_its_last_checkpoint(data_bin, tmp_path, monkeypatch, option, status):
    monkeypatch.setattr(PREEMPTION, "report", lambda log: log.update({PREEMPTED: 1.0}))
    with pytest.raises(SystemExit, match=f"^{status}$"):
        toy.train(data_bin, tmp_path, "--max-update", "9", option)
    assert (tmp_path / "checkpoint_last.pt").exists() == (option != "--no-save")


def preempted_at(monkeypatch, number):
    """Makes an update receive the signal; returns the logging outputs of all updates."""
    report, reported = PREEMPTION.report, []

    def receive(log):
        reported.append(log)
        PREEMPTION.received = len(reported) == number
        report(log)

    monkeypatch.setattr(PREEMPTION, "report", receive)
    return reported


@pytest.mark.parametrize(
    ("number", "best"),
    [(4, 4), pytest.param(5, 4, marks=pytest.mark.slow), (9, 9)],
    ids=["end of an epoch", "between", "last update"],
)
def test_a_preempted_training_resumes_exactly(data_bin, tmp_path, monkeypatch, number, best):
    options = ["--validate-interval-updates", "3", "--save-interval-updates", "3", "--valid-subset", "train"]
    options += ["--max-update", "9"]
    toy.train(data_bin, tmp_path / "whole", *options)
    reported = preempted_at(monkeypatch, number)
    with contextlib.nullcontext() if number == 9 else pytest.raises(SystemExit, match=f"^{EXIT_STATUS}$"):
        toy.train(data_bin, tmp_path / "parts", *options)
    assert len(reported) == number
    whole, parts = (tmp_path / name / "checkpoint_best.pt" for name in ("whole", "parts"))
    assert updates(parts) == best
    if number < 9:
        assert best_loss(tmp_path / "parts" / "checkpoint_last.pt") == best_loss(parts)
        toy.train(data_bin, tmp_path / "parts", *options)
    toy.assert_same_state(parts, whole, 0, 0)
    assert updates(parts) == 9 == len(reported)


def test_a_finished_training_is_not_continued(data_bin, tmp_path):
    checkpoint = toy.train(data_bin, tmp_path, "--max-update", "2")
    trained = checkpoint.read_bytes()
    toy.train(data_bin, tmp_path, "--max-update", "2")
    assert checkpoint.read_bytes() == trained
    toy.train(data_bin, tmp_path, "--max-update", "3")
    assert updates(checkpoint) == 3


def test_a_training_does_not_resume_with_another_dictionary(data_bin, tmp_path):
    toy.train(data_bin, tmp_path / "model", "--max-update", "2")
    other = toy.with_other_words(data_bin, tmp_path / "other")
    with pytest.raises(InputError):
        toy.train(other, tmp_path / "model", "--max-update", "3")


RATE = 0.01
CONTEXT = ["--context-attention", "conditional", "--target-context-attention", "han", "--lr", str(RATE)]
SCALED = [*CONTEXT, "--context-lr-scale", "8"]


@pytest.fixture(scope="module")
def start(data_bin, tmp_path_factory):
    """Checkpoint of a sentence-level model."""
    return toy.train(data_bin, tmp_path_factory.mktemp("start"), "--context", "none", "--max-update", "4")


def trained(data_bin, folder, start, *options):
    """Weights after some updates from the sentence-level model."""
    return toy.state(toy.train(data_bin, folder, *options, "--finetune-from-model", str(start)))


@pytest.mark.parametrize(
    "optimizer", [["fused_adamw"], ["adam", "--bf16"], ["adam", "--memory-efficient-bf16"]], ids=" ".join
)
def test_the_first_update_of_added_parameters_is_scaled(data_bin, start, tmp_path, optimizer):
    options = ["--optimizer", *optimizer, "--max-update", "1"]
    plain = trained(data_bin, tmp_path / "1", start, *CONTEXT, *options)
    scaled = trained(data_bin, tmp_path / "8", start, *SCALED, *options)
    _, _, model = toy.build(data_bin, *CONTEXT)
    added = model.context_state_keys() - model.sentence_state_keys()
    compared = 0
    for name, value in plain.items():
        if name not in added:
            assert torch.equal(scaled[name], value), name
        elif name.endswith("context.out_proj.weight"):  # initialised with zero, so its values are the update
            assert value.abs().max() > RATE / 4
            torch.testing.assert_close(scaled[name], 8 * value, rtol=2**-7, atol=1e-6)
            compared += 1
    assert compared


def test_scaled_training_resumes_exactly(data_bin, start, tmp_path):
    options = ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", "3", "--max-update"]
    whole = trained(data_bin, tmp_path / "whole", start, *SCALED, *options, "6")
    trained(data_bin, tmp_path / "parts", start, *SCALED, *options, "3")
    parts = trained(data_bin, tmp_path / "parts", start, *SCALED, *options, "6")
    assert all(torch.equal(parts[name], value) for name, value in whole.items())


def test_flat_gradients_are_refused():
    parameters = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    setattr(parameters[0], LR_SCALE, 3.0)
    optimizer = FusedAdamW(FusedAdamWConfig(lr=[0.5]), parameters)
    with pytest.raises(InputError):
        divide_parameters(optimizer, parameters[:1])
