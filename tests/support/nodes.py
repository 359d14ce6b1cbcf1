"""Distributed trainings: agents of torchrun for several nodes on this machine."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support import toy

ROOT = Path(__file__).parents[2]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def agents(nodes, processes, arguments, *, restarts=0):
    """Starts an agent for each node."""
    options = ["--nnodes", str(nodes), "--nproc_per_node", str(processes), "--max_restarts", str(restarts)]
    port = free_port()
    return [agent(port, arguments, *options) for _ in range(nodes)]


def agent(port, arguments, *options, output=subprocess.PIPE):
    """Starts an agent that meets others at a port."""
    together = ["--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{port}", "--rdzv_id", "toy"]
    together += ["--local_addr", "127.0.0.1", "--monitor_interval", "0.1", *options]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *together, *arguments], stdout=output,
        stderr=subprocess.STDOUT, text=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )  # fmt: skip


def ended(started, status=0):
    """Waits for all agents; returns their output."""
    with ThreadPoolExecutor(len(started)) as readers:
        printed = list(readers.map(lambda one: one.communicate()[0], started))
    assert [one.returncode for one in started] == [status] * len(started), "\n".join(printed)[-6000:]
    return "\n".join(printed)


def training(data_bin, folder, *options, **kind):
    """Returns the command line of a training for torchrun."""
    fixed = ["--optimizer", "sgd", "--lr", "0.5", "--clip-norm", "0", "--disable-validation", "--save-dir", str(folder)]
    return [*toy.arguments(data_bin, *fixed, "--distributed-backend", "gloo", *options, **kind)]
