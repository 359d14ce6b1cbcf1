"""Jobs as tasks of Slurm's arrays; Slurm itself is two hundred lines that do on one machine what it documents."""

import json
import logging
import os
import signal
import threading

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import run_jobs, slurm_queue
from tests.support.jobs import SHELL, engine, fake_slurm, jobs_of, manifest, wait_for
from tests.support.processes import alive, forked


@pytest.fixture
def queue(tmp_path, monkeypatch):
    return fake_slurm(tmp_path, monkeypatch)


def test_an_array_does_all_jobs(tmp_path, queue):
    (queue / "busy").touch()  # the queue does not answer the first time
    jobs = jobs_of(tmp_path, {"a": "echo working; touch a.out", "b": "touch b.out", "c": "touch c.out"})
    (tmp_path / "c.out").touch()
    slurm = engine(
        "slurm", workers=7, job_threads=3, job_gpus=1, slurm_time="1:00:00", slurm_partition="long",
        slurm_memory="4G", slurm_options=["account=nmt"], slurm_setup="export PS9=here",
    )  # fmt: skip
    assert run_jobs(jobs, slurm, tmp_path / "w", program=SHELL)
    told = manifest(tmp_path / "w")
    assert [(name, one["state"], one["tries"]) for name, one in told.items()] == [
        ("a", "done", 1), ("b", "done", 1), ("c", "done", 0),
    ]  # fmt: skip
    assert "working" in (tmp_path / "w" / "logs" / "a.log").read_text()
    (submitted,) = queue.glob("submitted-*")
    lines = submitted.read_text().splitlines()
    wanted = ["array=0-1%7", "time=1:00:00", "partition=long", "mem=4G", "cpus-per-task=3", "gpus=1", "account=nmt"]
    assert {f"#SBATCH --{one}" for one in wanted} <= set(lines)
    assert "export PS9=here" in lines


def test_failed_tasks_are_submitted_again(tmp_path, queue):
    jobs = jobs_of(
        tmp_path,
        {"a": "touch a.out", "later": "test -e tried && touch later.out; touch tried", "never": "echo why; exit 1"},
    )
    with pytest.raises(InputError, match="1 of 3 jobs failed"):
        run_jobs(jobs, engine("slurm"), tmp_path / "w", tries=2, program=SHELL)
    assert {name: one["tries"] for name, one in manifest(tmp_path / "w").items()} == {"a": 1, "later": 2, "never": 2}
    assert len(list(queue.glob("submitted-*"))) == 2


def pid_of(queue, task):
    wait_for((queue / f"{task}.pid").read_text)
    return int((queue / f"{task}.pid").read_text())


def begun(tmp_path, queue):
    """Starts a job that goes on where it was, in a thread; returns what waits for its end."""
    text = "trap 'echo cut; exit 7' TERM; echo x >> runs; while ! test -e go; do sleep 0.05; done; touch a.out"
    jobs, found = jobs_of(tmp_path, {"a": text}), []

    def work():
        try:
            found.append(run_jobs(jobs, engine("slurm"), tmp_path / "w", tries=1, program=SHELL))
        except InputError as error:
            found.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    wait_for((tmp_path / "runs").read_text)

    def end():
        (tmp_path / "go").touch()
        thread.join()
        return found[0]

    return end


def test_a_task_near_its_time_limit_goes_back_into_the_queue(tmp_path, queue):
    end = begun(tmp_path, queue)
    os.kill(pid_of(queue, "1_0"), signal.SIGUSR1)
    wait_for(lambda: (tmp_path / "runs").read_text() == "x\nx\n")
    assert end() is True
    assert "cut" in (tmp_path / "w" / "logs" / "a.log").read_text()
    assert manifest(tmp_path / "w")["a"]["tries"] == 1, "what was put back was not tried"


def test_a_cancelled_task_does_not_come_back(tmp_path, queue):
    end = begun(tmp_path, queue)
    os.kill(pid_of(queue, "1_0"), signal.SIGTERM)
    wait_for(lambda: not (queue / "1_0").exists())
    assert "1 of 1 jobs failed" in end()
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_lost_task_is_said_to_be(tmp_path, queue):
    end = begun(tmp_path, queue)
    os.kill(pid_of(queue, "1_0"), signal.SIGKILL)
    assert "a: its process was lost" in end()


def test_an_array_submitted_before_is_waited_for(tmp_path, queue, monkeypatch):
    jobs = jobs_of(tmp_path, {"a": "echo x >> runs; while ! test -e go; do sleep 0.05; done; touch a.out"})

    def interrupted(array):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(slurm_queue, "queued", interrupted)
        run_jobs(jobs, engine("slurm"), tmp_path / "w", program=SHELL)
    threading.Timer(0.5, (tmp_path / "go").touch).start()
    assert run_jobs(jobs, engine("slurm"), tmp_path / "w", program=SHELL)
    assert (tmp_path / "runs").read_text() == "x\n"
    assert len(list(queue.glob("submitted-*"))) == 1


def test_an_array_is_found_whose_submitter_was_killed_before_it_knew_the_number(tmp_path, queue):
    (queue / "kill").touch()
    jobs = jobs_of(tmp_path, {"a": "echo x >> runs; while ! test -e go; do sleep 0.05; done; touch a.out"})
    with forked(lambda: run_jobs(jobs, engine("slurm"), tmp_path / "w", program=SHELL)) as pid:
        wait_for(lambda: not alive(pid))
    assert json.loads((tmp_path / "w" / "slurm" / "array.json").read_text())[0]["id"] is None
    threading.Timer(0.5, (tmp_path / "go").touch).start()
    assert run_jobs(jobs, engine("slurm"), tmp_path / "w", program=SHELL)
    assert (tmp_path / "runs").read_text() == "x\n" and len(list(queue.glob("submitted-*"))) == 1


@pytest.mark.parametrize("content", ["[{}]", '{"id": "1"}', '[{"script": 5, "names": ["a"]}]', "[" * 10**5, ""])
def test_what_cannot_have_been_submitted_is_not_waited_for(tmp_path, queue, content):
    (tmp_path / "w" / "slurm").mkdir(parents=True)
    (tmp_path / "w" / "slurm" / "array.json").write_text(content)
    assert run_jobs(jobs_of(tmp_path, {"a": "touch a.out"}), engine("slurm"), tmp_path / "w", program=SHELL)


@pytest.mark.parametrize("workers", [None, 2])
def test_more_jobs_than_an_array_may_have(tmp_path, queue, workers):
    (queue / "MaxArraySize").write_text("3")
    one = "echo {0} >> order; sleep 0.2; echo {0} >> order; touch {0}.out"
    jobs = jobs_of(tmp_path, {name: one.format(name) for name in "abcdefg"})
    assert run_jobs(jobs, engine("slurm", workers=workers), tmp_path / "w", program=SHELL)
    limit = "" if workers is None else "%2"
    arrays = [(queue / f"submitted-{number}").read_text() for number in (1, 2, 3)]
    for script, last in zip(arrays, (2, 2, 0)):
        assert f"#SBATCH --array=0-{last}{limit}\n" in script
    assert {name: one["tries"] for name, one in manifest(tmp_path / "w").items()} == dict.fromkeys("abcdefg", 1)
    if workers is not None:  # each array would run as many at once, so they follow each other
        order = (tmp_path / "order").read_text().split()
        assert [set(order[:6]), set(order[6:12])] == [set("abc"), set("def")]


def test_a_dry_run_submits_nothing(tmp_path, queue, caplog):
    jobs = jobs_of(tmp_path, {"a": "touch a.out"})
    with caplog.at_level(logging.INFO):
        assert not run_jobs(jobs, engine("slurm", dry_run=True), tmp_path / "w", program=SHELL)
    assert not list(queue.iterdir())
    (script,) = (tmp_path / "w" / "slurm").glob("*.sh")
    assert f"sbatch {script}" in caplog.text


def test_without_slurm_the_script_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    jobs = jobs_of(tmp_path, {"a": "touch a.out"})
    with pytest.raises(InputError, match=r"there is no sbatch here; .*array-\w+\.sh is written") as error:
        run_jobs(jobs, engine("slurm"), tmp_path / "w", program=SHELL)
    assert "same command again" in str(error.value)


def test_a_refused_array_is_told(tmp_path, queue):
    jobs = jobs_of(tmp_path, {"a": "touch a.out"})
    with pytest.raises(InputError, match="unrecognized arguments: --acount=x"):
        run_jobs(jobs, engine("slurm", slurm_options=["acount=x"]), tmp_path / "w", program=SHELL)
