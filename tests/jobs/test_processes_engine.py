"""Jobs as processes of this machine."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import ENGINES, Job, run_jobs
from tests.support.jobs import SHELL, engine, jobs_of, manifest, wait_for


def test_every_job_is_done_and_told_of(tmp_path):
    jobs = jobs_of(tmp_path, {"a": "echo working; touch a.out", "b": "echo $OMP_NUM_THREADS > b.out"})
    assert run_jobs(jobs, engine("processes", job_threads=3), tmp_path / "w", program=SHELL)
    assert (tmp_path / "b.out").read_text() == "3\n"
    told = manifest(tmp_path / "w")
    assert {name: (one["state"], one["tries"]) for name, one in told.items()} == {"a": ("done", 1), "b": ("done", 1)}
    assert told["a"]["host"] and told["a"]["seconds"] > 0
    assert (tmp_path / "w" / "logs" / "a.log").read_text().splitlines()[1:] == ["working"]


def test_docnmt_is_what_runs(tmp_path):
    job = Job("edits", ("edits", "--help"), tmp_path / "never")
    with pytest.raises(InputError, match="ended without "):
        run_jobs([job], engine("processes"), tmp_path / "w", tries=1)
    assert "usage: docnmt edits" in (tmp_path / "w" / "logs" / "edits.log").read_text()


def test_what_is_done_is_skipped(tmp_path):
    jobs = jobs_of(tmp_path, {"a": "echo ran >> ran; touch a.out", "b": "echo ran >> ran; touch b.out"})
    (tmp_path / "a.out").touch()
    run_jobs(jobs, engine("processes"), tmp_path / "w", program=SHELL)
    run_jobs(jobs, engine("processes"), tmp_path / "w", program=SHELL)
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_failed_jobs_are_tried_again_and_named_and_others_go_on(tmp_path):
    jobs = jobs_of(
        tmp_path,
        {
            "never": "echo n >> tries; echo first; echo the reason >&2; exit 3",
            "killed": "kill -9 $$",
            "later": "test -e tried && touch later.out; touch tried",
            "fine": "touch fine.out",
        },
    )
    with pytest.raises(InputError) as error:
        run_jobs(jobs, engine("processes", workers=1), tmp_path / "w", tries=3, program=SHELL)
    text = str(error.value)
    assert "2 of 4 jobs failed" in text
    assert f"never: the reason ({tmp_path / 'w' / 'logs' / 'never.log'})" in text
    assert "killed: killed by SIGKILL" in text
    assert (tmp_path / "tries").read_text() == "n\nn\nn\n"
    told = manifest(tmp_path / "w")
    assert {name: one["state"] for name, one in told.items()} == {
        "never": "failed", "killed": "failed", "later": "done", "fine": "done",
    }  # fmt: skip
    assert told["later"]["tries"] == 2
    with pytest.raises(InputError, match="never: the reason"):  # the same command tries again
        run_jobs(jobs, engine("processes"), tmp_path / "w", tries=1, program=SHELL)
    assert manifest(tmp_path / "w")["never"]["tries"] == 4


@pytest.mark.skipif(sys.platform != "linux", reason="signals without a name")
def test_a_signal_without_a_name_is_told_by_its_number(tmp_path):
    jobs = jobs_of(tmp_path, {"killed": "kill -40 $$", "fine": "touch fine.out"})
    with pytest.raises(InputError, match=r"1 of 2 jobs failed.*\n  killed: killed by signal 40 "):
        run_jobs(jobs, engine("processes"), tmp_path / "w", tries=1, program=SHELL)


def test_no_more_than_workers_at_once(tmp_path):
    text = "mkdir only && sleep {} && rmdir only && touch {}.out"
    jobs = jobs_of(tmp_path, {name: text.format(0.1, name) for name in "abc"})
    assert run_jobs(jobs, engine("processes", workers=1), tmp_path / "w", tries=1, program=SHELL)
    with pytest.raises(InputError, match="File exists"):
        other = jobs_of(tmp_path, {f"{name}{name}": text.format(5, name * 2) for name in "abc"})
        run_jobs(other, engine("processes", workers=3), tmp_path / "w", tries=1, program=SHELL)


def test_each_job_has_gpus_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7,8")
    jobs = jobs_of(tmp_path, {name: f"sleep 1; echo $CUDA_VISIBLE_DEVICES > {name}.out" for name in "ab"})
    run_jobs(jobs, engine("processes", job_gpus=2), tmp_path / "w", program=SHELL)
    assert sorted((tmp_path / f"{name}.out").read_text() for name in "ab") == ["4,5\n", "6,7\n"]
    with pytest.raises(InputError, match="--job-gpus 6: there are 5 GPUs"):
        more = jobs_of(tmp_path, {"c": "touch c.out"})
        run_jobs(more, engine("processes", job_gpus=6), tmp_path / "w", program=SHELL)


OTHER = """
import sys
from pathlib import Path
from docnmt_fairseq.jobs import ENGINES, Job, run_jobs
cls = ENGINES["processes"]
job = Job("slow", ("exec sleep 60",), Path("never"))
run_jobs([job], cls(cls.Options()), Path("w"), program=("sh", "-c"))
"""


def other_run(folder):
    process = subprocess.Popen([sys.executable, "-c", OTHER], cwd=folder, stderr=subprocess.PIPE)
    wait_for(lambda: json.loads((folder / "w" / "records" / "slow.json").read_text())["state"] == "running")
    return process


def sleepers(folder):
    """The processes that a run left there."""
    found = []
    for path in os.listdir("/proc"):
        try:
            if path.isdigit() and os.readlink(f"/proc/{path}/cwd") == str(folder):
                found.append(int(path))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_jobs_end_with_the_run_and_its_folder_is_free(tmp_path, how):
    with other_run(tmp_path) as process:
        jobs = jobs_of(tmp_path, {"a": "touch a.out"})
        with pytest.raises(InputError, match=r"process \d+ on .* is at work there; wait for its end, or end it"):
            run_jobs(jobs, engine("processes"), tmp_path / "w", program=SHELL, patience=0.2)
        process.send_signal(how)
        process.wait()
        wait_for(lambda: not sleepers(tmp_path))
        time.sleep(0.1)
        assert run_jobs(jobs, engine("processes"), tmp_path / "w", program=SHELL)


def test_names_are_those_of_files_and_differ(tmp_path):
    with pytest.raises(ValueError, match="names of jobs"):
        Job("../a", (), tmp_path)
    twice = jobs_of(tmp_path, {"a": "true"}) * 2
    with pytest.raises(ValueError, match="same name"):
        run_jobs(twice, engine("processes"), tmp_path / "w", program=SHELL)


@pytest.mark.parametrize("name", ENGINES.names())
def test_engines_refuse_what_is_out_of_range(name):
    with pytest.raises(InputError, match="--workers 0"):
        engine(name, workers=0)
    with pytest.raises(InputError, match="--job-threads 0"):
        engine(name, job_threads=0)
