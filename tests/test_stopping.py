"""Which signals ask a training to end."""

import os
import signal

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.stopping import ASKED, StopRequest
from tests.support import toy

SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)


@pytest.fixture(autouse=True)
def received():
    """Signals that nobody takes, and which do nothing; handlers are put back."""
    found = []
    before = {number: signal.signal(number, lambda number, frame: found.append(number)) for number in SIGNALS}
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ("USR1", [signal.SIGUSR1]),
        ("USR1, TERM", [signal.SIGUSR1, signal.SIGTERM]),
        ("USR2", [signal.SIGUSR2]),
        ("", []),
    ],
)
def test_the_signals_that_are_named_are_taken_and_no_others(received, names, taken):
    for number in SIGNALS:
        request = StopRequest()
        request.listen(names)
        os.kill(os.getpid(), number)
        assert request.received == (number if number in taken else None)
        log = {}
        request.tell(log)
        assert log == {ASKED: float(number in taken)}
    assert received == [number for number in SIGNALS if number not in taken]


def test_one_process_that_was_asked_is_enough():
    """A validation, whose logs say nothing of it, changes that no more; another training begins anew."""
    request = StopRequest()
    for logs, agreed in (([{ASKED: 0.0}, {}], False), ([{ASKED: 0.0}, {ASKED: 1.0}], True), ([{}], True)):
        request.hear(logs)
        assert request.agreed is agreed
    request.received = signal.SIGUSR1
    request.listen("")
    assert (request.received, request.agreed) == (None, False)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("USR1,HUPP", "--save-on-signals USR1,HUPP: HUPP is no signal; names are e.g. USR1,TERM"),
        ("SIGTERM", "--save-on-signals SIGTERM: SIGTERM is no signal"),
        ("_DFL", "--save-on-signals _DFL: _DFL is no signal"),
        ("KILL", "--save-on-signals KILL: nobody can take KILL; use e.g. USR1,TERM"),
    ],
)
def test_what_is_no_signal_or_cannot_be_taken_is_refused(names, message):
    with pytest.raises(InputError, match=f"^{message}"):
        StopRequest().listen(names)


def test_a_training_takes_the_signals_of_its_option(data_bin, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("docnmt_fairseq.training_setup.REQUEST.listen", told.append)
    toy.train(data_bin, tmp_path / "own", "--max-update", "1", "--no-save")
    toy.train(data_bin, tmp_path / "other", "--max-update", "1", "--no-save", "--save-on-signals", "USR2,TERM")
    assert told == ["USR1", "USR2,TERM"]
