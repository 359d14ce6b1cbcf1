"""The commands of documented blocks, run by bash as they are printed, at smoke size and without importing fairseq anew.

A server imports the package and fairseq once. On the path stand files named ``docnmt``, ``fairseq-train``, …; each hands
its arguments, folder and open files to the server, which forks and runs the command in the child; a command that starts
``python -m fairseq_cli.…`` comes back here, too. What makes a command small is put behind its arguments, where it wins.
"""

import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Dict, List

FAIRSEQ = {f"fairseq-{name}": name for name in ("train", "generate", "interactive", "validate", "preprocess")}
FAIRSEQ["fairseq-hydra-train"] = "hydra_train"
CLIENT = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [json.dumps([os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd()]).encode()], [0, 1, 2])
    sys.exit(int(server.recv(16) or 1))
"""
SMALL_SEARCH = ["--cpu", "--max-len-b", "6"]
# By command, or by command and subcommand.
SMALL: Dict[str, List[str]] = {
    "fairseq-train": ["--cpu", "--num-workers", "0", "--max-update", "2", "--max-tokens", "400"],
    "fairseq-generate": [*SMALL_SEARCH, "--num-workers", "0"],
    "fairseq-interactive": SMALL_SEARCH,
    "fairseq-validate": ["--cpu", "--num-workers", "0"],
    "fairseq-hydra-train": [
        "common.cpu=true", "dataset.num_workers=0", "optimization.max_update=2", "dataset.max_tokens=400",
    ],  # fmt: skip
    "docnmt synth": ["--train-documents", "12", "--valid-documents", "2", "--test-documents", "2"],
    "docnmt prepare": ["--workers", "1"],
    "docnmt translate": SMALL_SEARCH,
    "docnmt recipe": ["--smoke", "--workers", "1"],
    "docnmt contrast": ["--cpu"],
    "docnmt cxmi": ["--cpu"],
}


def entry_point(command: str):
    """The function that a command runs."""
    if command == "docnmt":
        from docnmt_fairseq.cli import main

        return main
    return importlib.import_module(f"fairseq_cli.{FAIRSEQ[command]}").cli_main


def serve(address: str) -> None:
    """Runs commands until the parent is gone."""
    import fairseq_cli.generate  # noqa: F401
    import fairseq_cli.hydra_train
    import fairseq_cli.interactive
    import fairseq_cli.preprocess
    import fairseq_cli.train
    import fairseq_cli.validate  # noqa: F401

    import docnmt_fairseq

    docnmt_fairseq.register()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                answer(client)


def answer(client: socket.socket) -> None:
    """Runs one command in this process, and ends it."""
    message, files, _, _ = socket.recv_fds(client, 1 << 16, 3)
    command, arguments, folder = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    small = SMALL.get(command) or SMALL.get(" ".join([command, *arguments[:1]]), [])
    if command == "python":
        module = arguments[1].rpartition(".")[2] if arguments[:1] == ["-m"] and len(arguments) > 1 else ""
        command, arguments = f"fairseq-{module}", arguments[2:]
        if command not in FAIRSEQ:
            os.execv(sys.executable, [sys.executable, *json.loads(message)[1]])
    sys.executable = str(Path(os.environ["PATH"].split(":")[0]) / "python")
    sys.argv = [command, *arguments, *small]
    status = 1
    try:
        status = entry_point(command)() or 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(str(status).encode())
    os._exit(0)


class Shell:
    """bash in a folder, with the commands of the package that stands there or in the repository.

    Args:
        folder: where blocks are run; holds ``docnmt_fairseq``.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        tools = folder / ".tools"
        tools.mkdir()
        address = str(tools / "socket")
        for command in ("docnmt", "python", *FAIRSEQ):
            (tools / command).write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
            (tools / command).chmod(0o755)
        root = Path(__file__).resolve().parents[2]
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"}
        self.environment["PYTHONPATH"] = f"{folder}:{root}"
        self.server = subprocess.Popen(
            [sys.executable, "-m", __name__, address], cwd=folder, env=self.environment, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.server.stdout is not None and self.server.stdout.readline() == "ready\n", self.server.stderr.read()

    def run(self, script: str) -> subprocess.CompletedProcess:
        """Runs a script of several commands, of which none may fail."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def close(self) -> None:
        """Ends the server."""
        self.server.terminate()
        self.server.wait()


if __name__ == "__main__":
    serve(sys.argv[1])
