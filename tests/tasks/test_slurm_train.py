"""Trainings as jobs of Slurm, whose commands are stand-ins on this machine."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support import toy
from tests.support.jobs import fake_slurm
from tests.support.nodes import free_port, training
from tests.support.processes import wait_for

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "slurm_train.sh"
UPDATES = ["--max-update", "150", "--batch-size", "1", "--lr", "0.01", "--save-interval-updates", "1000"]
UPDATES += ["--no-epoch-checkpoints", "--log-interval", "1", "--log-format", "json"]
SGD = ["--optimizer", "sgd", "--clip-norm", "0"]
# Waits for a signal and ends with 75, but in the last of some runs, which ends at once.
STUB = """#!/bin/sh
echo "$*" >> {folder}/trainings
[ "$(wc -l < {folder}/trainings)" = {runs} ] && exit {status}
trap 'echo saved; exit 75' USR1
echo >> {folder}/waits
while :; do sleep 0.05; done
"""


@pytest.fixture
def queue(tmp_path, monkeypatch):
    for name, value in {"PET_LOCAL_ADDR": "127.0.0.1", "PORT": str(free_port()), "PYTHONPATH": str(ROOT)}.items():
        monkeypatch.setenv(name, value)
    return fake_slurm(tmp_path, monkeypatch)


def submit(folder, arguments, nodes=2):
    options = ["--nodes", str(nodes), "--chdir", str(folder)]
    command = ["sbatch", "--parsable", *options, f"--output={folder}/log", str(SCRIPT), *arguments]
    subprocess.run(command, check=True, capture_output=True)


def send(queue, number):
    os.kill(int((queue / "1_0.pid").read_text()), number)


def stub(folder, monkeypatch, runs, status):
    """Puts something in the place of Python that waits for a signal, but in the last of some runs."""
    (folder / "commands" / "python").write_text(STUB.format(folder=folder, runs=runs, status=status))
    (folder / "commands" / "python").chmod(0o755)


def wait_for_the_end(queue):
    wait_for(lambda: not (queue / "1_0").exists())


@pytest.mark.slow
def test_a_job_near_its_time_limit_saves_and_goes_on_to_the_same_weights(data_bin, tmp_path, queue):
    submit(tmp_path, training(data_bin, tmp_path / "jobs", *UPDATES), nodes=1)
    log = tmp_path / "log"
    wait_for(lambda: re.search(r'"num_updates": "[5-9]"', log.read_text()))
    send(queue, signal.SIGUSR1)
    wait_for_the_end(queue)
    printed = log.read_text()
    (saved,) = re.findall(r"stopped by a signal: saved at (\d+) updates", printed)
    assert 5 <= int(saved) < 150 and re.findall(r"start (\d): 1 × 1 processes", printed) == ["0", "1"]
    assert re.findall(r"Loaded checkpoint .*epoch \d+ @ (\d+) updates", printed) == [saved]
    whole = toy.train(data_bin, tmp_path / "whole", *UPDATES, *SGD)
    toy.assert_same_state(whole, tmp_path / "jobs" / "checkpoint_last.pt")  # in this process rows are grouped otherwise


@pytest.mark.parametrize(("status", "starts"), [(0, 2), (1, 2)])
def test_only_what_was_asked_to_end_goes_back_into_the_queue(tmp_path, queue, monkeypatch, status, starts):
    stub(tmp_path, monkeypatch, 2, status)
    submit(tmp_path, ["data", "--arch", "a model"], nodes=1)
    wait_for((tmp_path / "waits").exists)
    send(queue, signal.SIGUSR1)
    wait_for_the_end(queue)
    trainings = (tmp_path / "trainings").read_text().splitlines()
    assert len(trainings) == starts and all(
        line.endswith("fairseq_cli.train data --arch a model") for line in trainings
    )
    assert "127.0.0.1:" in trainings[0] and "saved" in (tmp_path / "log").read_text()


def test_all_machines_are_asked(tmp_path, queue, monkeypatch):
    stub(tmp_path, monkeypatch, 4, 0)
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "8")
    submit(tmp_path, ["data"])
    wait_for(lambda: (tmp_path / "waits").exists() and (tmp_path / "waits").read_text() == 2 * "\n")
    send(queue, signal.SIGTERM)
    wait_for_the_end(queue)
    assert (tmp_path / "log").read_text().count("saved") == 2
    assert "--nnodes 2 --nproc_per_node 8 --rdzv-backend c10d" in (tmp_path / "trainings").read_text()


def test_a_cancelled_job_saves_and_does_not_come_back(tmp_path, queue, monkeypatch):
    stub(tmp_path, monkeypatch, 2, 0)
    submit(tmp_path, ["data"], nodes=1)
    wait_for((tmp_path / "waits").exists)
    send(queue, signal.SIGTERM)
    wait_for_the_end(queue)
    assert "saved" in (tmp_path / "log").read_text()
    assert re.findall(r"start (\d)", (tmp_path / "log").read_text()) == ["0"]


def test_a_job_is_not_put_back_for_ever(tmp_path, queue, monkeypatch):
    stub(tmp_path, monkeypatch, 3, 75)
    monkeypatch.setenv("REQUEUED_AT_MOST", "1")
    submit(tmp_path, ["data"], nodes=1)
    for run in (1, 2):
        wait_for(lambda run=run: len((tmp_path / "trainings").read_text().splitlines()) == run)
        wait_for((tmp_path / "waits").exists)
        (tmp_path / "waits").unlink()
        send(queue, signal.SIGUSR1)
    wait_for_the_end(queue)
    assert "requeued 1 times already" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "option", ["--no-save", "--restore-file x.pt", "--restore-file=x.pt", "--reset-optimizer", "--reset-dataloader"]
)
def test_what_would_begin_anew_each_time_is_refused(option):
    command = ["bash", str(SCRIPT), "data", *option.split()]
    environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    named = re.split("[ =]", option)[0]
    assert result.returncode == 2 and f"{named}: a job that goes back into the queue would begin anew" in result.stderr


@pytest.mark.parametrize(("environment", "arguments"), [({}, ["data"]), ({"SLURM_JOB_ID": "1"}, [])])
def test_the_script_says_how_it_is_used(environment, arguments):
    command = ["bash", str(SCRIPT), *arguments]
    result = subprocess.run(command, env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True)
    assert result.returncode == 2 and "slurm_train.sh" in result.stderr
