"""Places that one process has for itself: two at once are refused, a killed one is in nobody's way."""

import contextlib
import errno
import fcntl
import logging
import os
import re
import signal
import sys
import time

import pytest

from docnmt_fairseq import locks
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.locks import beside, holding, in_folder, workplace
from tests.support import toy
from tests.support.processes import alive, children, forked, started, wait_for

REFUSED = r"process \d+ on \S+ \(since [\d :-]+\) is at work there; wait for its end, or end it, and start again$"


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 0.3)


def keeping(lock, **options):
    """Holds a lock for long."""
    with holding(lock, "x", **options):
        lock.with_name("held").touch()
        time.sleep(60)


def test_a_killed_process_is_named_and_leaves_the_place_at_once(tmp_path):
    lock = in_folder(tmp_path / "place")
    with forked(lambda: keeping(lock)) as pid:
        wait_for((tmp_path / "place" / "held").exists)
        with pytest.raises(InputError, match=rf"^--output x: {REFUSED}") as refused, holding(lock, "--output x"):
            pass
        assert f"process {pid} on" in str(refused.value)
    assert lock.exists()
    with holding(lock, "x", patience=0):
        assert f'"process": {os.getpid()},' in lock.read_text() and str(pid) not in lock.read_text()
    assert not lock.exists()


def test_what_was_not_there_before_is_not_there_afterwards(tmp_path):
    with holding(in_folder(tmp_path / "new"), "x"):
        pass
    assert not (tmp_path / "new").exists()
    with holding(in_folder(tmp_path / "new"), "x"):
        (tmp_path / "new" / "result").touch()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["result"]


@pytest.mark.parametrize("inherited", [True, False])
def test_who_was_forked_holds_it_if_that_is_wanted(tmp_path, inherited):
    lock = beside(tmp_path / "file")

    def parent():
        with holding(lock, "x", inherited=inherited), forked(lambda: time.sleep(60)) as child:
            (tmp_path / "child").write_text(str(child))
            time.sleep(60)

    with forked(parent):
        wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    child = int((tmp_path / "child").read_text())
    try:
        with pytest.raises(InputError, match=REFUSED) if inherited else contextlib.nullcontext(), holding(lock, "x"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
    wait_for(lambda: not alive(child))
    with holding(lock, "x"):
        pass


def test_some_are_at_work_together(tmp_path):
    lock = beside(tmp_path / "file")
    with holding(lock, "x", shared_by="2 shards"):
        for other in ("", "3 shards"):
            with pytest.raises(InputError, match=REFUSED), holding(lock, "x", shared_by=other):
                pass
        with holding(lock, "x", shared_by="2 shards"):
            pass
        assert lock.exists(), "one of two took the lock of both away"
    assert not lock.exists()
    with holding(lock, "x"), pytest.raises(InputError, match=REFUSED), holding(lock, "x", shared_by="2 shards"):
        pass


def test_never_two_at_once_though_locks_come_and_go(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "PATIENCE", 30.0)
    monkeypatch.setattr(locks, "PAUSE", 0.0005)
    count, processes = tmp_path / "count", []
    count.write_text("0")

    def add():
        for _ in range(60):
            with holding(beside(count), "x"):
                before = int(count.read_text())
                time.sleep(0.0005)
                count.write_text(str(before + 1))

    for _ in range(4):
        processes.append(os.fork())
        if not processes[-1]:
            add()
            os._exit(0)
    assert [os.waitpid(pid, 0)[1] for pid in processes] == [0] * 4
    assert count.read_text() == "240"


def test_a_file_system_without_locks_is_warned_of(tmp_path, monkeypatch, caplog):
    def refusing(stream, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refusing)
    with caplog.at_level(logging.WARNING), holding(in_folder(tmp_path), "x"):
        pass
    assert re.search(r"\.lock: cannot be locked .*No locks available.*; see to it that no two", caplog.text)


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    place = holding(in_folder(tmp_path / "file"), "--output x")
    with pytest.raises(InputError, match=r"--output x: .*/file is a file; give a folder"), place:
        pass


def seen(what):
    """What is there, as soon as something is."""
    found = []
    wait_for(lambda: found.extend(what()) or found)
    return found


@pytest.mark.slow
def test_two_trainings_in_one_folder(data_bin, tmp_path):
    options = ["--optimizer", "adam", "--lr", "0.01", "--save-dir", str(tmp_path), "--disable-validation"]
    options += ["--max-update", "100000", "--num-workers", "2", "--no-epoch-checkpoints"]
    with started(sys.executable, "-m", "fairseq_cli.train", *toy.arguments(data_bin, *options)) as pid:
        wait_for((tmp_path / ".lock").exists, 120)
        with pytest.raises(InputError, match=rf"^--save-dir {tmp_path}: process {pid} on .* is at work there"):
            toy.train(data_bin, tmp_path, "--max-update", "1")
        toy.train(data_bin, tmp_path, "--max-update", "1", "--no-save")
        loaders = seen(lambda: children(pid))
    assert loaders and any(map(alive, loaders)), "what held the lock with the training has ended: nothing is tested"
    began = time.monotonic()
    toy.train(data_bin, tmp_path, "--max-update", "1")
    toy.train(data_bin, tmp_path, "--max-update", "2")
    assert time.monotonic() - began < 60 and not (tmp_path / ".lock").exists()


def test_a_workplace_is_left_to_who_is_at_work_there(tmp_path):
    with workplace(tmp_path / "made") as first:
        with workplace(tmp_path / "made") as second:
            assert first != second and first.is_dir()
        assert not second.exists()
    assert not list(tmp_path.iterdir())
