"""Every form of file, damaged at random, is read or refused in a line; what else may happen is noticed."""

import os
import signal
import time

import pytest

from benchmarks.robustness import fuzz
from benchmarks.robustness.damage import KINDS, damaged
from benchmarks.robustness.readers import READERS, Subject
from docnmt_fairseq.errors import InputError

PREPARED = {
    "data-bin",
    "index of documents",
    "dictionary",
    "checkpoint",
    "SentencePiece",
    "truecaser",
    "manifest",
}  # seconds to make
FORMS = [pytest.param(name, marks=pytest.mark.slow) if name in PREPARED else name for name in READERS]


@pytest.mark.parametrize("name", FORMS)
def test_damaged_files_are_read_or_refused(name, tmp_path):
    found = fuzz.fuzz(name, 30, 7, tmp_path)
    assert not found["faults"]
    assert sum(found["outcomes"].values()) == 30


def reader(action):
    def make(folder):
        folder.mkdir(exist_ok=True)
        path = folder / "file"
        path.write_bytes(b"content 1 2 3")
        return Subject([path], lambda _: action(path.read_bytes()))

    return make


def raises(content):
    raise KeyError(f"{content!r}")


ENDS = {
    "a traceback": (raises, "KeyError in test_damaged_files.py"),
    "a crash": (lambda content: os.kill(os.getpid(), signal.SIGKILL), "the process ended, -9"),
    "an end": (lambda content: os._exit(3), "the process ended, 3"),
    "memory": (lambda content: bytearray(1 << 34), "MemoryError in"),
    "a loop": (lambda content: time.sleep(60), "hangs"),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_may_not_happen_is_noticed(name, tmp_path, monkeypatch):
    action, message = ENDS[name]
    monkeypatch.setattr(fuzz, "SLOW", 0)
    monkeypatch.setitem(READERS, name, reader(action))
    found = fuzz.fuzz(name, 2, 1, tmp_path)
    assert found["outcomes"] == {"fault": 2}
    (detail,) = found["faults"]
    assert message in detail


def test_refusals_and_whole_files_are_none(tmp_path, monkeypatch):
    def read(content):
        if len(content) % 2:
            raise InputError("of odd length")

    monkeypatch.setitem(READERS, "odd", reader(read))
    found = fuzz.fuzz("odd", 20, 1, tmp_path)
    assert not found["faults"] and {*found["outcomes"]} == {"refused", "read"}


def test_damage_is_repeatable_and_of_every_kind():
    import random

    content = b"12 words, 3 <p> of text" * 20
    assert damaged(content, random.Random(1)) == damaged(content, random.Random(1)) != content
    for kind in KINDS:
        changed = bytearray(content)
        kind(changed, random.Random(2))
        assert changed != content, kind.__name__
