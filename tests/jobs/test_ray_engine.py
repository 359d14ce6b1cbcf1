"""Jobs as tasks of Ray, which is started for them here."""

import sys

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import run_jobs
from tests.support.jobs import SHELL, engine, jobs_of, manifest


@pytest.mark.slow
def test_ray_does_all_jobs_and_tries_again_what_fails(tmp_path):
    pytest.importorskip("ray")
    jobs = jobs_of(
        tmp_path,
        {
            "a": "echo $OMP_NUM_THREADS > a.out",
            "later": "test -e tried && touch later.out; touch tried",
            "never": "echo n >> tries; echo why; exit 1",
            # the worker process of Ray, as when its machine is lost
            "lost": "test -e killed && touch lost.out || { touch killed; kill -9 $PPID; sleep 60; }",
        },
    )
    with pytest.raises(InputError, match="1 of 4 jobs failed") as error:
        run_jobs(jobs, engine("ray", workers=2), tmp_path / "w", tries=2, program=SHELL)
    assert "never: why" in str(error.value)
    assert (tmp_path / "tries").read_text() == "n\nn\n" and (tmp_path / "a.out").read_text() == "1\n"
    told = manifest(tmp_path / "w")
    assert {name: one["tries"] for name, one in told.items()} == {"a": 1, "later": 2, "never": 2, "lost": 2}


def test_without_ray_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    jobs = jobs_of(tmp_path, {"a": "touch a.out"})
    with pytest.raises(InputError, match=r"pip install 'docnmt_fairseq\[ray\]'"):
        run_jobs(jobs, engine("ray"), tmp_path / "w", program=SHELL)


def test_no_cluster_is_told(tmp_path):
    pytest.importorskip("ray")
    jobs = jobs_of(tmp_path, {"a": "touch a.out"})
    with pytest.raises(InputError, match="--engine ray: none at 127"):
        run_jobs(jobs, engine("ray", ray_address="127.0.0.1:1"), tmp_path / "w", program=SHELL)
