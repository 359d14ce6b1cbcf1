"""Four processes of two nodes train what one process trains, are asked to end, killed, and go on as fewer or more."""

import contextlib
import json
import os
import re
import signal
import subprocess

import pytest
import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.stopping import STATUS
from tests.support import toy
from tests.support.architectures import ARCHITECTURES
from tests.support.checkpoints import saved, updates
from tests.support.documents import SEVEN, write_data_bin
from tests.support.nodes import agent, agents, ended, free_port, training
from tests.support.processes import wait_for

# As in test_processes: plain gradient descent makes equal steps of equal gradients. Adam divides gradients by their own
# size, and makes whole steps of what rounding leaves of those that are truly zero, such as those of keys' biases; those
# of weights are not.
ROUNDING = {"atol": 2e-6, "rtol": 1e-5}
ADAM = ["--optimizer", "adam", "--lr", "0.001"]
FOUR_UPDATES = ["--max-update", "4"]
GENTLE = ["--lr", "0.1"]  # at 0.5 some of them diverge, and rounding with them
MAIN = ["conditional, block", "memory gru", "tree by keys", "target han", "concatenation", "rnn gru"]
EVERY = [f"{name}, {CONTEXT_MECHANISMS[name].placements[0]}" for name in CONTEXT_MECHANISMS.names()]
EVERY += [f"decoder {name}" for name in DECODER_MECHANISMS.names()]
EVERY += [f"target {name}" for name in TARGET_MECHANISMS.names()]


def one_process(data_bin, folder, *options, **kind):
    fixed = ["--optimizer", "sgd", "--lr", "0.5", "--clip-norm", "0"]
    return toy.train(data_bin, folder, *fixed, *options, **kind)


@pytest.mark.slow
def test_four_processes_of_two_nodes_equal_one(data_bin, tmp_path, starts_soon):
    """Every mechanism that is registered, in one start of four processes, which takes longer than the trainings."""
    models = {name: (ARCHITECTURES[name], [*FOUR_UPDATES, *GENTLE]) for name in EVERY}
    models |= {name: (ARCHITECTURES[name], FOUR_UPDATES) for name in MAIN}
    models["with Adam"] = (ARCHITECTURES[MAIN[0]], [*FOUR_UPDATES, *ADAM])
    commands = []
    for name, (model, options) in models.items():
        commands.append(training(data_bin, tmp_path / "four" / name, *model.options, *options, **model.kind))
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    four = agents(2, 2, ["-m", "tests.support.many_trainings", str(tmp_path / "commands.json")])
    for name, (model, options) in models.items():
        more = [*model.options, *options, "--update-freq", "4"]
        one_process(data_bin, tmp_path / "one" / name, *more, **model.kind)
    ended(four)
    for name, (_, options) in models.items():
        one, other = (toy.state(tmp_path / place / name / "checkpoint_last.pt") for place in ("one", "four"))
        for key in one:
            if "adam" not in options or key.endswith("weight"):
                torch.testing.assert_close(other[key], one[key], **ROUNDING, msg=f"{name}: {key}")
        assert updates(tmp_path / "four" / name / "checkpoint_last.pt") == 4


LONG = ["--max-update", "400", "--batch-size", "1", "--save-interval-updates", "20", "--keep-interval-updates", "2"]
LONG += ["--no-epoch-checkpoints", "--log-interval", "1", "--log-format", "json", "--lr", "0.001"]


def at_update(process, number):
    """Reads what a training prints until it is at an update."""
    for line in process.stdout:
        found = re.search(r'"num_updates": "(\d+)"', line)
        if found and int(found[1]) >= number:
            return
    raise AssertionError("it ended")


def workers_of(process):
    """The trainings that an agent of torchrun started."""
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    return sorted(map(int, children))


def killed(process):
    """Kills an agent and what it started."""
    for pid in [*workers_of(process), process.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_signal_to_one_process_ends_all_at_the_same_update_with_a_checkpoint(data_bin, tmp_path):
    command = ["-m", "fairseq_cli.train", *training(data_bin, tmp_path, *LONG)]
    (agent,) = agents(1, 2, command)
    at_update(agent, 7)
    os.kill(workers_of(agent)[1], signal.SIGUSR1)
    printed = agent.communicate()[0]
    assert agent.returncode == STATUS, printed[-3000:]
    place, number = saved(tmp_path)
    assert "asked to end: saved at" in printed and 7 <= number < 400
    batches = 18 * (place["epoch"] - 1) + place["batches_in_epoch"]
    assert batches == 2 * number, "both had as many batches as there were updates"
    # as one process, to the place where two would have been
    later = [*LONG, "--max-update", str(number + 4)]
    one_process(data_bin, tmp_path, *later)
    place, after = saved(tmp_path)
    assert after == number + 4
    assert 18 * (place["epoch"] - 1) + place["batches_in_epoch"] == batches + 4


@pytest.mark.slow
def test_a_killed_process_is_started_again_and_goes_on_from_the_last_whole_checkpoint(data_bin, tmp_path):
    options = [*LONG, "--max-update", "30", "--save-interval-updates", "5"]
    command = ["-m", "fairseq_cli.train", *training(data_bin, tmp_path / "killed", *options)]
    (agent,) = agents(1, 2, command, restarts=1)
    at_update(agent, 12)
    os.kill(workers_of(agent)[0], signal.SIGKILL)
    printed = ended([agent])
    begun = [int(found) for found in re.findall(r"Loaded checkpoint .*epoch \d+ @ (\d+) updates", printed)]
    assert begun and begun[0] % 5 == 0 and begun[0] >= 10
    whole = ended(agents(1, 2, ["-m", "fairseq_cli.train", *training(data_bin, tmp_path / "whole", *options)]))
    assert whole
    assert saved(tmp_path / "killed") == saved(tmp_path / "whole")
    toy.assert_same_state(tmp_path / "killed" / "checkpoint_last.pt", tmp_path / "whole" / "checkpoint_last.pt", 0, 0)


def batches_of(phases, updates, in_an_epoch=18):
    """The batches of an epoch that are had after some updates.

    Args:
        phases: the updates at which so many processes began, by these.
        updates: in all.
        in_an_epoch: of data.
    """
    had = 0
    for number in range(updates):
        processes = [count for begun, count in phases if begun <= number][-1]
        had = min(had + processes, in_an_epoch) % in_an_epoch
    return had


@pytest.mark.slow
def test_nodes_join_and_die_and_no_batch_is_left_out(data_bin, tmp_path):
    options = ["--max-update", "100000", "--batch-size", "1", "--save-interval-updates", "5", "--lr", "0.001"]
    options += ["--keep-interval-updates", "1", "--no-epoch-checkpoints", "--log-interval", "500"]
    command = ["-m", "fairseq_cli.train", *training(data_bin, tmp_path, *options)]
    elastic = ["--nnodes", "1:2", "--nproc_per_node", "1", "--max_restarts", "3", "--rdzv_conf"]
    elastic += ["last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"]
    port, started, logs = free_port(), [], [tmp_path / "first.log", tmp_path / "second.log"]

    def start():  # not into pipes, which nobody reads until the end
        with open(logs[len(started)], "w") as stream:
            started.append(agent(port, command, *elastic, output=stream))

    def wait_for_updates(more):
        begin = saved(tmp_path)[1] if (tmp_path / "checkpoint_last.pt").exists() else 0
        wait_for(lambda: saved(tmp_path)[1] >= begin + more, 120)

    try:
        start()
        wait_for_updates(5)
        start()
        first, second = started
        wait_for(lambda: workers_of(second))
        before = workers_of(first)
        wait_for_updates(10)
        killed(second)
        wait_for(lambda: workers_of(first) and workers_of(first) != before)
        wait_for_updates(10)
        first.send_signal(signal.SIGUSR1)
        status = first.wait(60)
    finally:
        for one in started:
            killed(one)
    printed = "".join(log.read_text() for log in logs)
    assert status == STATUS, printed[-3000:]
    counts = [int(count) for count in re.findall(r"training on (\d+) devices", printed)]
    loaded = [int(found) for found in re.findall(r"Loaded checkpoint .*epoch \d+ @ (\d+) updates", printed)]
    place, number = saved(tmp_path)
    phases = sorted(zip([0, *loaded], counts))
    assert [count for _, count in phases] == [1, 2, 1]
    assert place["batches_in_epoch"] == batches_of(phases, number)


THREE = {"train": [[["a b", "c d e"]], [["e"], ["d a"]], [["b b a", "c"]]]}


@pytest.mark.slow
def test_two_processes_and_one_go_on_in_the_data_bin_they_were_in(data_bin, tmp_path, starts_soon):
    """Of 18 and 7 documents, two an update; and of 3, of which one process has none in every other update."""
    known = ["--srcdict", str(data_bin / "dict.src.txt")]
    folders = {name: tmp_path / name for name in ("seven", "three")}
    for folder in folders.values():
        folder.mkdir()
    seven = write_data_bin(folders["seven"], SEVEN, *known)
    three = write_data_bin(folders["three"], THREE, *known)
    several, sgd = f"{data_bin}:{seven}", ["--optimizer", "sgd", "--clip-norm", "0", "--lr", "0.1", "--batch-size", "1"]
    updates = {"middle": 5, "boundary": 9, "in the second": 11, "at its end": 13}

    def options(number):
        return [*sgd, "--max-update", str(number)]

    commands = [training(several, tmp_path / name, *options(number)) for name, number in updates.items()]
    commands += [training(several, tmp_path / name, *options(15)) for name in ("middle", "boundary", "whole")]
    commands.append(training(three, tmp_path / "few", *options(5)))
    (tmp_path / "commands.json").write_text(json.dumps(commands))
    two = agents(1, 2, ["-m", "tests.support.many_trainings", str(tmp_path / "commands.json")])
    more = ["--update-freq", "2"]
    whole = toy.train(several, tmp_path / "one", *options(15), *more)
    few = toy.train(three, tmp_path / "one of few", *options(5), *more)
    ended(two)
    for name in ("whole", "middle", "boundary"):
        toy.assert_same_state(tmp_path / name / "checkpoint_last.pt", whole, **ROUNDING)
    for name in ("in the second", "at its end"):  # two processes, then one
        toy.assert_same_state(toy.train(several, tmp_path / name, *options(15), *more), whole, **ROUNDING)
        assert saved(tmp_path / name) == saved(tmp_path / "one")
    toy.assert_same_state(tmp_path / "few" / "checkpoint_last.pt", few, **ROUNDING)
    assert saved(tmp_path / "one")[0]["epoch"] == 3
