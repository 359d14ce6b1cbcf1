"""Machines that train together: here they are threads, and what they would run is noted."""

import threading
import time

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes import machines, node_group
from docnmt_fairseq.recipes.machines import Machine, Share
from docnmt_fairseq.recipes.node_group import NodeGroup, Rendezvous, run_worker_node
from tests.support.nodes import free_port
from tests.support.processes import wait_for


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(node_group, "POLL", 0.02)
    monkeypatch.setattr(node_group, "PATIENCE", 2.0)
    monkeypatch.setattr(node_group, "SHUTDOWN_WAIT", 2.0)


@pytest.fixture
def commands(monkeypatch):
    """What is run, instead of being run."""
    found = []
    for module in (node_group, machines):
        monkeypatch.setattr(module, "run", lambda command, *rest, **more: found.append((command, rest[1].name)))
    return found


def rendezvous(nodes=3, processes=4):
    return Rendezvous("127.0.0.1", free_port(), nodes, processes, True)


class Other(threading.Thread):
    """Another machine, and what became of it."""

    def __init__(self, place, rank, *more):
        super().__init__(daemon=True)
        self.place, self.rank, self.more, self.error = place, rank, more, None
        self.start()

    def run(self):
        try:
            run_worker_node(self.place, self.rank, *self.more)
        except InputError as error:
            self.error = str(error)

    def end(self):
        self.join(20)
        assert not self.is_alive()
        return self.error


def test_all_machines_run_their_part_of_each_training(tmp_path, commands, monkeypatch):
    monkeypatch.setattr(node_group, "ANSWER", 0.0)
    place, mine = rendezvous(), tmp_path / "mine"
    others = [Other(place, rank, mine) for rank in (2, 1)]
    with NodeGroup(place) as first:
        machine = Machine(4, True, first, mine)
        assert machine.share(12 * 512, []) == Share(512, [1])
        for name in ("a", "b"):
            machine.train(["data-bin", "--arch", name], tmp_path / f"{name}.log")
            wait_for(lambda name=name: sum(name in command for command, _ in commands) == 3)
            first.check()  # all have answered
    assert [other.end() for other in others] == [None, None]
    by_log = {log: command for command, log in commands}
    assert sorted(by_log) == ["a.1.log", "a.2.log", "a.log", "b.1.log", "b.2.log", "b.log"]
    for log, command in by_log.items():
        rank = log.split(".")[1].replace("log", "0")
        words = " ".join(command)
        assert f"-m docnmt_fairseq.torchrun --nnodes 3 --node-rank {rank} --master-addr 127.0.0.1" in words
        assert f"--nproc_per_node 4 -m fairseq_cli.train data-bin --arch {log[0]} --cpu" in words
        assert "--distributed-backend gloo" in words and words.endswith(f"--user-dir {mine}")
    ports = [command[command.index("--master-port") + 1] for command, _ in commands]
    assert len(set(ports)) == 2 and str(place.port) not in ports


def test_a_training_that_fails_elsewhere_fails_here_with_its_error(tmp_path, monkeypatch):
    def fail(*arguments, **more):
        raise InputError("its GPU is gone")

    monkeypatch.setattr(node_group, "run", fail)
    place = rendezvous(2)
    other = Other(place, 1)
    with pytest.raises(InputError, match="machine 1: its GPU is gone"), NodeGroup(place) as first:
        first.call([], tmp_path / "train.log")
        wait_for(lambda: first._has("failed", 1))
        first.check()
    assert other.end() == "machine 1: its GPU is gone"


def test_a_training_looks_after_the_other_machines(tmp_path, monkeypatch):
    checks = []
    monkeypatch.setattr(machines, "run", lambda *_, check: checks.append(check))
    with NodeGroup(rendezvous(2)) as first:
        first._store.set("here/1", "")
        Machine(4, True, first).train([], tmp_path / "train.log")
        checks[0]()
        first._store.set("failed/1", "machine 1: its GPU is gone")
        with pytest.raises(InputError, match="machine 1: its GPU is gone"):
            checks[0]()


def test_a_part_of_a_training_ends_when_the_first_machine_is_gone(tmp_path, monkeypatch):
    begun = threading.Event()

    def run(*_, check):
        begun.set()
        while True:
            check()
            time.sleep(0.02)

    monkeypatch.setattr(node_group, "run", run)
    place = rendezvous(2)
    first, other = NodeGroup(place), Other(place, 1)
    first.call([], tmp_path / "train.log")
    assert begun.wait(20)
    first._store = None
    assert "machine 1: " in (error := other.end()) and "the first machine is gone" in error


def test_machines_that_are_told_something_else_are_refused():
    place = rendezvous(2)
    with NodeGroup(place):
        other = Other(place._replace(processes=2), 1)
        assert other.end() == (
            "--nodes 2 --processes 2 --cpu: the first machine has --nodes 2 --processes 4 --cpu; give all the same"
        )


def test_the_others_hear_of_the_error_of_the_first():
    place = rendezvous(2)
    other = Other(place, 1)
    with pytest.raises(InputError, match="no such file"), NodeGroup(place) as first:
        first._wait_for_all()
        raise InputError("no such file\nat all")
    assert other.end() == "the first machine ended with an error: no such file"


def test_a_first_machine_that_is_gone_is_noticed():
    place = rendezvous(2)
    first, other = NodeGroup(place), Other(place, 1)
    first._wait_for_all()
    first._store = None  # its server ends, as that of a killed process
    assert "the first machine is gone; start the same command on all machines" in other.end()


def test_nobody_waits_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(node_group, "PATIENCE", 0.1)
    place = rendezvous(3)
    assert "no first machine (--node-rank 0) is there" in Other(place, 1).end()
    with pytest.raises(InputError, match="--node-rank 1, 2 did not come"), NodeGroup(place) as first:
        first.call([], tmp_path / "log")
    monkeypatch.setattr(node_group, "ANSWER", 0.0)
    with pytest.raises(InputError, match="machine 1 does not answer"), NodeGroup(rendezvous(2)) as first:
        first._store.set("here/1", "")
        first.call([], tmp_path / "log")
        first.check()


def test_there_is_one_first_machine():
    place = rendezvous(2)
    other = Other(place, 1)
    with (
        NodeGroup(place),
        pytest.raises(InputError, match=r"--rendezvous 127\.0\.0\.1:.*: nothing can be opened there"),
    ):
        NodeGroup(place)
    assert other.end() is None


@pytest.mark.parametrize(
    ("tokens", "options", "batches", "processes", "share"),
    [
        (4096, [], [1], 1, Share(4096, [1])),
        (4096, [], [1], 4, Share(1024, [1])),
        (4096, ["--update-freq", "4"], [4], 4, Share(4096, [1])),
        (4096, ["--update-freq", "2"], [2], 4, Share(2048, [1])),
        (4096, ["--update-freq=6", "--lr", "1"], [6], 4, Share(2048, [3])),
        (4095, ["--update-freq", "3", "--update-freq", "9"], [9], 3, Share(4095, [3])),
        (4096, ["--update-freq", "4,8"], [4, 8], 8, Share(2048, [1, 2])),
    ],
)
def test_a_step_is_shared_out_whole(tokens, options, batches, processes, share):
    found = Machine(processes).share(tokens, options)
    assert found == share
    assert [processes * found.tokens * number for number in found.batches] == [tokens * number for number in batches]


def test_documents_of_a_batch_are_shared_out_as_its_tokens_are():
    share = Machine(8).share(4096, ["--batch-size", "64", "--update-freq", "2"])
    assert share.options() == ["--max-tokens", "1024", "--batch-size", "16", "--update-freq", "1"]
    with pytest.raises(InputError, match="--batch-size 6: 4 processes cannot share"):
        Machine(4).share(4096, ["--batch-size", "6"])
    with pytest.raises(InputError, match="--batch-size many: 4 processes cannot share"):
        Machine(4).share(4096, ["--batch-size", "many"])


def test_one_process_takes_one_gpu_however_many_there_are():
    assert Machine(1).options() == ["--distributed-world-size", "1"] and Machine(4).options() == []
    assert "--distributed-world-size" not in Machine(1, cpu=True).options()


@pytest.mark.parametrize("former", [["--max-sentences", "64"], ["--max-sentences=64"]])
def test_the_former_name_of_documents_is_known(former):
    assert Machine(4).share(4096, ["--batch-size", "8", *former]).documents == 16


def test_tokens_of_a_batch_are_no_option():
    with pytest.raises(InputError, match="--max-tokens 100: of recipes it is batch_tokens"):
        Machine(1).share(4096, ["--max-tokens", "100"])


def test_what_cannot_be_shared_is_refused_with_what_can():
    with pytest.raises(InputError, match=r"3 processes cannot share 2 × 4,096 tokens.*that can: 1, 2, 4$"):
        Machine(3).share(4096, ["--update-freq", "2"])
    with pytest.raises(InputError, match="--update-freq 0: expected numbers from 1"):
        Machine(2).share(4096, ["--update-freq", "0"])
