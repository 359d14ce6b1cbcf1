"""scripts/slurm_train.sh with stand-ins for the commands of Slurm."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import toy
from tests.support.nodes import free_port, training

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "slurm_train.sh"
COMMANDS = {
    "scontrol": 'if [ "$1" = show ]; then echo 127.0.0.1; else echo "$@" >> {folder}/requeued; fi',
    "srun": """for rank in 0 1; do SLURM_PROCID=$rank SLURM_LOCALID=$rank SLURM_NTASKS=2 "$@" & tasks="$tasks $!"; done
status=0; for task in $tasks; do wait $task || status=$?; done; exit $status""",
}
STUB = 'echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $*" >> {folder}/started; exit {status}'


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Returns a function that runs the script as a job of two tasks; with a status, python is a stub that ends so."""

    def run(arguments, status=None):
        commands = COMMANDS if status is None else {**COMMANDS, "python": STUB}
        for name, text in commands.items():
            (tmp_path / name).write_text(
                "#!/bin/bash\n" + text.replace("{folder}", str(tmp_path)).replace("{status}", str(status))
            )
            (tmp_path / name).chmod(0o755)
        own = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "x", "PORT": str(free_port()), "PYTHONPATH": str(ROOT)}
        path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, **own, "PATH": path, "OMP_NUM_THREADS": "1"}
        return subprocess.run(["bash", str(SCRIPT), *arguments], env=environment, capture_output=True, text=True)

    return run


@pytest.mark.parametrize(("status", "requeued"), [(0, False), (1, False), (75, True)])
def test_stopped_training_is_requeued(job, tmp_path, status, requeued):
    assert job(["data", "--arch", "a model"], status).returncode == status
    assert (tmp_path / "requeued").exists() is requeued
    started = sorted((tmp_path / "started").read_text().splitlines())
    assert [line.split()[:3] for line in started] == [["0", "0", "2"], ["1", "1", "2"]]
    assert all("127.0.0.1:" in line and line.endswith("fairseq_cli.train data --arch a model") for line in started)


@pytest.mark.slow
@pytest.mark.usefixtures("starts_soon")
def test_tasks_train_one_model(job, data_bin, tmp_path):
    options = ["--max-update", "3", "--batch-size", "1", "--lr", "0.01"]
    done = job(training(data_bin, tmp_path / "two", *options))
    assert done.returncode == 0, done.stderr[-3000:]
    sgd = ["--optimizer", "sgd", "--clip-norm", "0", "--update-freq", "2"]
    one = toy.train(data_bin, tmp_path / "one", *options, *sgd)
    toy.assert_same_state(tmp_path / "two" / "checkpoint_last.pt", one, atol=2e-6, rtol=1e-5)
