"""Commands that are killed at random moments end with what they give undisturbed; what differs is noticed."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.lib import killed
from benchmarks.robustness import kills
from benchmarks.robustness.kills import Scenario, made


@pytest.mark.slow
def test_commands_survive_kills():
    found = kills.measure(9, 5, ["train", "translate", "score"])
    assert {name: one.faults for name, one in found.items()} == {name: [] for name in found}
    assert [sum(one.outcomes.values()) for one in found.values()] == [3, 3, 3]
    assert "| train | 3 |" in kills.report({name: kills.result(one) for name, one in found.items()})


@pytest.mark.slow
def test_prepare_survives_kills(monkeypatch):
    monkeypatch.setattr(kills, "LIMIT", 60.0)
    found = kills.measure(6, 5, ["prepare", "workers"])
    assert {name: one.faults for name, one in found.items()} == {"prepare": [], "workers": []}
    assert found["workers"].outcomes == {"a child": 3}


@pytest.mark.slow
@pytest.mark.parametrize("name", kills.SHARED_OUT)
def test_work_that_is_shared_out_survives_a_kill(name):
    found = kills.measure(1, 5, [name])
    assert found[name].faults == [] and sum(found[name].outcomes.values()) == 1
    assert name != "ranks" or found[name].outcomes == {"a child": 1}


OPEN = 1.0  # seconds that something half-done is there; on a busy machine a process needs a part of them to begin


def scenario(write):
    def run(folder):
        time.sleep(0.05)
        write(folder)
        time.sleep(0.1)

    return Scenario(run)


def in_place(folder):
    """Writes half a file, waits, and takes what is there for whole the next time."""
    if not (folder / "out").exists():
        (folder / "out").write_text("half")
        time.sleep(OPEN)
        (folder / "out").write_text("whole")


def left_behind(folder):
    (folder / "out").write_text("whole")
    (folder / f"{os.getpid()}.partial").touch()
    time.sleep(OPEN)
    (folder / f"{os.getpid()}.partial").unlink()


def orphaning(folder):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    time.sleep(4)
    (folder / "out").write_text("whole")


def failing(folder):
    if (folder / "begun").exists():
        raise RuntimeError("cannot go on")
    (folder / "begun").touch()
    time.sleep(OPEN)
    (folder / "begun").unlink()


FAULTS = {"in place": (in_place, "differs: out"), "half-written": (left_behind, r"partial \(too much\)"),
          "no going on": (failing, "exit status 1 without a kill: RuntimeError: cannot go on")}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_noticed(name, tmp_path):
    import re

    write, message = FAULTS[name]
    one = scenario(write)
    one.first(made(tmp_path / "undisturbed"))
    chance = random.Random(1)
    chance.uniform = lambda low, high: OPEN / 2  # the kill falls into what is open
    assert one.killed_until_whole(made(tmp_path / "work"), chance, 1) == 1
    assert any(re.search(message, fault) for fault in one.faults), one.faults


def test_processes_that_are_left_are_counted_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(killed, "GRACE", 0.1)
    outcome = killed.run(lambda: orphaning(made(tmp_path / "x")), tmp_path / "log", 20, 1.5, Itself())
    assert outcome.killed == "itself" and outcome.status == -signal.SIGKILL and outcome.left == 1


class Itself:
    def choice(self, processes):
        return processes[0]


def test_what_hangs_is_stopped(tmp_path):
    outcome = killed.run(lambda: time.sleep(60), tmp_path / "log", 0.2)
    assert outcome.status is None and outcome.seconds < 10


def test_exit_status_and_output(tmp_path):
    assert killed.run(lambda: sys.exit("no"), tmp_path / "log", 10).status == 1
    assert killed.run(lambda: 7, tmp_path / "log", 10).status == 7
    killed.run(lambda: print("said"), tmp_path / "other", 10)
    assert (tmp_path / "other").read_text() == "said\n"
