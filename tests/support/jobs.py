"""Jobs that are shell commands, and a Slurm of two small scripts."""

import json
import os
import sys
import time
from pathlib import Path

from docnmt_fairseq.jobs import ENGINES, Job, slurm_queue
from docnmt_fairseq.jobs.engines import slurm

SHELL = ("sh", "-c")
PATIENCE = 180.0  # seconds; what is waited for takes a tenth of that on a machine with nothing else to do


def engine(name, workers=None, **options):
    cls = ENGINES[name]
    return cls(cls.Options(**options), workers)


def jobs_of(folder, commands):
    """Jobs that run in a folder; each is done when NAME.out is there."""
    return [Job(name, (f"cd {folder}; {text}",), folder / f"{name}.out") for name, text in commands.items()]


def manifest(folder):
    return json.loads((folder / "jobs.json").read_text())["jobs"]


def wait_for(what, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while True:
        try:
            if what():
                return
        except (OSError, ValueError):
            pass
        assert time.monotonic() < until, "it never happens"
        time.sleep(0.05)


def fake_slurm(folder, monkeypatch):
    """Puts sbatch, srun, squeue and scontrol onto the path; returns the folder of the queue."""
    queue, commands = folder / "queue", folder / "commands"
    queue.mkdir()
    commands.mkdir()
    program = Path(__file__).with_name("fake_slurm.py")
    for name in ("sbatch", "srun", "squeue", "scontrol"):
        (commands / name).write_text(
            f"#!{sys.executable}\n{program.read_text()}".replace("__file__", repr(str(program)))
        )
        (commands / name).chmod(0o755)
    monkeypatch.setenv("FAKE_SLURM", str(queue))
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_queue, "POLL", 0.1)
    monkeypatch.setattr(slurm, "SETTLE", 0.3)
    return queue
