"""What Slurm is given: the list of jobs, the script of an array, and the task that it runs on each machine."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from secrets import token_hex
from typing import List, Optional, Sequence

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.jobs.attempt import Attempt
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.workplace import Workplace

PAUSE = 0.2  # seconds between two looks at what runs
WARNING_TIME = 120  # seconds before the time limit
REQUEUED_AT_MOST = 100  # times; a job that never gets anywhere must end some day


def write_tasks(jobs: Sequence[Job], place: Workplace) -> Path:
    """Writes the list of jobs into a file of its own, as arrays may be in the queue that read earlier ones."""
    path = place.folder / "slurm" / f"array-{token_hex(4)}.json"
    content = {"place": place.to_json(), "jobs": [job.to_json() for job in jobs]}
    atomic_write_bytes(path, (json.dumps(content, indent=1) + "\n").encode())
    return path


def array_script(
    tasks: Path, number: int, place: Workplace, workers: Optional[int], directives: Sequence[str], setup: Optional[str]
) -> str:
    """The script of an array.

    Args:
        tasks: file of :func:`write_tasks`.
        number: of tasks.
        place: where they run.
        workers: how many at once at most.
        directives: of sbatch, ``name=value``.
        setup: shell commands before each task.
    """
    logs = str(tasks.with_name("%A_%a.out")).replace("%", "%%").replace("%%A_%%a", "%A_%a")
    limit = "" if workers is None else f"%{workers}"
    own = [
        f"job-name={place.folder.name}", f"array=0-{number - 1}{limit}", f"chdir={place.directory}", f"output={logs}",
        "open-mode=append", "requeue", f"signal=B:USR1@{WARNING_TIME}", *directives,
    ]  # fmt: skip
    lines = ["#!/bin/bash", *(f"#SBATCH --{shlex.quote(directive)}" for directive in own), "set -e", setup or ""]
    command = [sys.executable, "-m", "docnmt_fairseq.jobs.slurm_script", str(tasks)]
    lines.append(f'exec {shlex.join(command)} "$SLURM_ARRAY_TASK_ID"')
    return "\n".join(line for line in lines if line) + "\n"


def run_task(path: Path, number: int) -> int:
    """Runs a job of a list on the machine that Slurm chose; the exit status.

    SIGUSR1, which Slurm sends before the time is up, ends the job and puts the task back into the queue, where the job
    goes on. SIGTERM ends it: whoever preempts a task puts it back, too, and whoever cancels it does not want it back.
    """
    content = json.loads(path.read_bytes())
    job, place = Job.from_json(content["jobs"][number]), Workplace.from_json(content["place"])
    if place.is_done(job):
        return 0
    received: List[int] = []
    for one in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(one, lambda number, frame: received.append(number))
    attempt = Attempt(job, place, {})
    while not received and attempt.poll() is None:
        time.sleep(PAUSE)
    if not received:
        return 0 if attempt.poll() else 1
    attempt.stop()
    if place.is_done(job):
        return 0
    if received[0] == signal.SIGUSR1:
        requeue()
    return 128 + received[0]


def requeue() -> None:
    """Puts the task that this process is back into Slurm's queue."""
    environment = os.environ
    if int(environment.get("SLURM_RESTART_COUNT", "0")) >= REQUEUED_AT_MOST:
        print(f"requeued {REQUEUED_AT_MOST} times already", file=sys.stderr)
        return
    task = f"{environment['SLURM_ARRAY_JOB_ID']}_{environment['SLURM_ARRAY_TASK_ID']}"
    subprocess.run(["scontrol", "requeue", task], check=False)


if __name__ == "__main__":
    sys.exit(run_task(Path(sys.argv[1]), int(sys.argv[2])))
