"""Processes that share work: in order, with errors as they are, and never left waiting by one that is killed."""

import concurrent.futures
import multiprocessing.pool
import os
import random
import threading
import time

import pytest

from docnmt_fairseq.corpus.config import PrepareConfig
from docnmt_fairseq.corpus.prepare import prepare
from docnmt_fairseq.corpus.transform import in_processes
from docnmt_fairseq.corpus.workers import CHUNK, WorkerKilled, Workers
from docnmt_fairseq.errors import InputError
from tests.support.documents import write_lines
from tests.support.processes import alive, children, forked, wait_for

SENTENCES = [f"{number} " + "word " * 40 for number in range(CHUNK * 25 + 7)]


class Odd(Exception):
    """An error that cannot go from process to process."""

    def __init__(self, one, two):
        super().__init__(one)


def make():
    def work(sentence):
        if sentence == "bad":
            raise InputError.at("file", 3, "bad")
        if sentence == "odd":
            raise Odd(1, 2)
        if sentence == "wait":
            time.sleep(60)
        return f"{sentence}|{os.getpid()}"

    return work


def test_order_and_shares():
    with in_processes(make, 3) as shared:
        found = [line.split("|") for line in shared(SENTENCES)]
        assert shared([]) == [] and len(shared(["one"])) == 1
    assert [line for line, _ in found] == SENTENCES
    assert len({pid for _, pid in found}) == 3 and str(os.getpid()) not in {pid for _, pid in found}
    assert not multiprocessing.active_children()


def test_errors_come_as_they_are():
    with pytest.raises(InputError, match=r"^file:3: bad$") as refused, in_processes(make, 2) as shared:
        shared([*SENTENCES, "bad"])
    assert refused.value.place == ("file", 3, "bad") and "in work" in str(refused.value.__cause__)
    with pytest.raises(RuntimeError, match="in work"), in_processes(make, 2) as shared:
        shared(["odd"])
    assert not multiprocessing.active_children()


def test_others_end_at_once_when_one_has_an_error():
    began = time.monotonic()
    with pytest.raises(InputError), in_processes(make, 2) as shared:
        shared(["wait"] * CHUNK + ["bad"])
    assert time.monotonic() - began < 10 and not multiprocessing.active_children()


def test_killed_at_any_moment_nobody_waits():
    chance, killed = random.Random(3), 0
    for _ in range(40):
        workers = Workers(make, 2)
        victim = chance.choice(multiprocessing.active_children())
        timer = threading.Timer(chance.uniform(0, 0.02), victim.kill)
        timer.start()
        try:
            while True:
                assert [line.split("|")[0] for line in workers.map(SENTENCES)] == SENTENCES
        except WorkerKilled:
            killed += 1
        finally:
            timer.join()
            workers.close()
    assert killed == 40 and not multiprocessing.active_children()


def test_a_killed_one_is_told():
    message = "--workers 2: one of the processes was killed, perhaps for want of memory; start again .* fewer --workers"
    with pytest.raises(InputError, match=message), in_processes(make, 2) as shared:
        multiprocessing.active_children()[0].kill()
        while True:
            shared(SENTENCES)


def test_they_end_with_the_one_that_asks(tmp_path):
    def asking():
        with in_processes(make, 2):
            (tmp_path / "there").touch()
            time.sleep(60)

    with forked(asking) as pid:
        wait_for((tmp_path / "there").exists)
        workers = children(pid)
        assert len(workers) == 2 and all(map(alive, workers))
    wait_for(lambda: not any(map(alive, workers)))


def test_so_many_cannot_be_started(monkeypatch):
    def refused(*args):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    with pytest.raises(InputError, match="--workers 2: no more processes can be started"), in_processes(make, 2):
        pass


@pytest.mark.parametrize("subwords", ["none", "bpe"])
def test_prepare_has_no_other_processes(tmp_path, monkeypatch, subwords):
    def refused(*args, **options):
        raise AssertionError("a pool that waits for a killed process")

    monkeypatch.setattr(multiprocessing.pool.Pool, "__init__", refused)
    monkeypatch.setattr(concurrent.futures.ProcessPoolExecutor, "__init__", refused)
    for side in ("en", "de"):
        write_lines(tmp_path / f"train.{side}", ["A cat sat here .", "It slept .", ""] * 20)
    models = {"tokenizer": "moses", "truecase": True, "subwords": subwords, "vocab_size": 30}
    prepare(PrepareConfig("en", "de", tmp_path / "out", train=str(tmp_path / "train"), workers=2, **models))
