"""The package's torchrun: signals, statuses and stores; the trainings are a few lines that never import PyTorch."""

import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent

from docnmt_fairseq.fairseq_patches.training import EXIT_STATUS as STATUS
from docnmt_fairseq.torchrun import Agent
from tests.support.processes import wait_for

TRAINING = """
import os, signal, sys, time
folder, asked = sys.argv[1], []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
with open(f"{folder}/starts", "a") as stream:
    stream.write(f"{os.environ['RANK']}, agent's store: {os.environ['TORCHELASTIC_USE_AGENT_STORE']}\\n")
until = time.monotonic() + 300
while not asked and time.monotonic() < until:
    if os.path.exists(f"{folder}/fails"):
        sys.exit(3)
    time.sleep(0.02)
sys.exit(75)
"""
ONE_START = ["0, agent's store: False", "1, agent's store: False"]


@pytest.fixture
def start(tmp_path):
    (tmp_path / "training.py").write_text(TRAINING)
    started = []

    def start(*options):
        command = [sys.executable, "-m", "docnmt_fairseq.torchrun", "--standalone", "--nproc_per_node", "2"]
        command += [*options, "--monitor_interval", "0.1", str(tmp_path / "training.py"), str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def starts(folder):
    return sorted((folder / "starts").read_text().splitlines())


def wait_until_begun(folder):
    wait_for(lambda: len(starts(folder)) == 2)


def test_a_signal_reaches_the_trainings_which_are_not_started_again(start, tmp_path):
    process = start("--max_restarts", "2")
    wait_until_begun(tmp_path)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(120) == STATUS
    assert starts(tmp_path) == ONE_START


def test_trainings_that_were_asked_by_others_are_not_started_again(start, tmp_path):
    process = start("--max_restarts", "2")
    wait_until_begun(tmp_path)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    for pid in children:
        os.kill(int(pid), signal.SIGUSR1)
    assert process.wait(120) == STATUS
    assert starts(tmp_path) == ONE_START


def test_trainings_that_fail_are_started_again_as_often_as_asked_for(start, tmp_path):
    (tmp_path / "fails").touch()
    process = start("--max_restarts", "1")
    assert process.wait(120) == 1
    assert re.search(r"exitcode\s*: 3", process.stdout.read())
    assert starts(tmp_path) == sorted(2 * ONE_START)


@pytest.mark.parametrize("when", ["_shutdown", "_rendezvous"])
def test_a_signal_between_two_starts_ends_it(monkeypatch, when):
    """While the former trainings end, or other machines are waited for, there is nobody to be told."""
    agent, calls = Agent.__new__(Agent), []
    agent._asked, agent._pcontext = False, SimpleNamespace(pids=dict)
    for step in ("_shutdown", "_rendezvous", "_start_workers"):
        asks = agent._ask if step == when else lambda: None
        monkeypatch.setattr(LocalElasticAgent, step, lambda *_, step=step, asks=asks: (calls.append(step), asks()))
    with pytest.raises(SystemExit) as ended:
        agent._restart_workers(SimpleNamespace(spec=SimpleNamespace(role="default")))
    assert ended.value.code == STATUS and "_start_workers" not in calls
