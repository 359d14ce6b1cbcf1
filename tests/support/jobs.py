"""Slurm of two small scripts."""

import os
import sys
from pathlib import Path


def fake_slurm(folder, monkeypatch):
    """Puts sbatch, srun and scontrol onto the path; returns the folder of the queue."""
    queue, commands = folder / "queue", folder / "commands"
    queue.mkdir()
    commands.mkdir()
    program = Path(__file__).with_name("fake_slurm.py")
    for name in ("sbatch", "srun", "scontrol"):
        (commands / name).write_text(
            f"#!{sys.executable}\n{program.read_text()}".replace("__file__", repr(str(program)))
        )
        (commands / name).chmod(0o755)
    monkeypatch.setenv("FAKE_SLURM", str(queue))
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    return queue
