"""The commands of documented blocks, run by bash as they are printed, small and without importing fairseq anew.

A server imports the package and fairseq once. On the path stand files named ``docnmt``, ``fairseq-train``, …; each
hands its arguments, folder and open files to the server, which forks and runs the command in the child, and the signal
to end, too; a command that starts ``python -m fairseq_cli.…`` comes back here, too. What makes a command small is put
behind its arguments, where it wins.
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
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    command = [os.path.basename(sys.argv[0]), sys.argv[1:], os.getcwd()]
    socket.send_fds(server, [json.dumps(command).encode()], [0, 1, 2])
    answers = server.makefile()
    process = int(answers.readline())
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(process, number))
    sys.exit(int(answers.readline() or 1))
"""
SLOW_TO_IMPORT = ("torch._dynamo", "sacrebleu", "sacremoses", "matplotlib.pyplot", "scipy.stats")
SEARCH = ["--cpu", "--max-len-b", "6"]
WIDTHS = ["encoder-embed-dim", "decoder-embed-dim", "encoder-ffn-embed-dim", "decoder-ffn-embed-dim"]
# What is put behind the arguments, by command, or by command and subcommand.
SMALL: Dict[str, List[str]] = {
    "fairseq-train": [
        "--cpu", "--num-workers", "0", "--max-update", "2", "--max-tokens", "400",
        *(part for width in WIDTHS for part in (f"--{width}", "16")),
    ],
    "fairseq-generate": [*SEARCH, "--num-workers", "0"],
    "fairseq-interactive": SEARCH,
    "fairseq-validate": ["--cpu", "--num-workers", "0"],
    "fairseq-hydra-train": [
        "common.cpu=true", "dataset.num_workers=0", "optimization.max_update=2", "dataset.max_tokens=400",
        "model.encoder_embed_dim=16", "model.encoder_ffn_embed_dim=16",
    ],
    "docnmt synth": ["--train-documents", "6", "--valid-documents", "1", "--test-documents", "2"],
    "docnmt prepare": ["--workers", "1"],
    "docnmt translate": SEARCH,
    "docnmt serve": SEARCH,
    "docnmt recipe": ["--smoke", "--workers", "1"],
    "docnmt contrast": ["--cpu"],
    "docnmt cxmi": ["--cpu"],
}  # fmt: skip
# Values that are too large for the tests' corpora, wherever they are given.
INSTEAD = {"--vocab-size": "34"}


def entry_point(command: str):
    """The function that a command runs."""
    if command == "docnmt":
        from docnmt_fairseq.cli import main

        return main
    return importlib.import_module(f"fairseq_cli.{FAIRSEQ[command]}").cli_main


def serve(address: str) -> None:
    """Runs commands until the parent is gone."""
    for module in (*(f"fairseq_cli.{name}" for name in FAIRSEQ.values()), *SLOW_TO_IMPORT):
        importlib.import_module(module)
    importlib.import_module("docnmt_fairseq").register()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                answer(client)
            client.close()  # or a child that dies would leave its command waiting


def answer(client: socket.socket) -> None:
    """Runs one command in this process, and ends it."""
    message, files, _, _ = socket.recv_fds(client, 1 << 16, 3)
    command, arguments, folder = json.loads(message)
    client.sendall(f"{os.getpid()}\n".encode())
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    small = SMALL.get(command) or SMALL.get(" ".join([command, *arguments[:1]]), [])
    if command == "python":
        module = arguments[1].rpartition(".")[2] if arguments[:1] == ["-m"] and len(arguments) > 1 else ""
        command, arguments = f"fairseq-{module}", arguments[2:]
        if command not in FAIRSEQ:
            done = subprocess.run([sys.executable, *json.loads(message)[1]])
            client.sendall(f"{done.returncode}\n".encode())
            os._exit(0)
    sys.executable = str(Path(os.environ["PATH"].split(":")[0]) / "python")
    for place, option in enumerate(arguments[:-1]):
        arguments[place + 1] = INSTEAD.get(option, arguments[place + 1])
    # fairseq knows the imported package by its path, and the folder may have a link to it.
    package = os.path.join(folder, "docnmt_fairseq")
    for given in ("docnmt_fairseq", f"common.user_dir={package}"):
        real = given.replace(package, "docnmt_fairseq").replace("docnmt_fairseq", os.path.realpath(package))
        arguments = [real if argument == given else argument for argument in arguments]
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
    client.sendall(f"{status}\n".encode())
    os._exit(0)


class Shell:
    """bash, with the commands of a package that need not import fairseq each time.

    Args:
        folder: for the server and what stands for the commands.
        package: the folder that the package is in.
    """

    def __init__(self, folder: Path, package: Path):
        address = str(folder / "socket")
        for command in ("docnmt", "python", *FAIRSEQ):
            (folder / command).write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
            (folder / command).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"}
        self.environment["PYTHONPATH"] = f"{package}:{Path(__file__).resolve().parents[2]}"
        log = folder / "log"  # a pipe that nobody reads would fill
        with log.open("w", encoding="utf-8") as errors:
            command = [sys.executable, "-m", __name__, address]
            self.server = subprocess.Popen(
                command, cwd=package, env=self.environment, text=True, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.server.stdout is not None
        assert "ready\n" in iter(self.server.stdout.readline, ""), log.read_text(encoding="utf-8")

    def run(self, script: str, folder: Path) -> subprocess.CompletedProcess:
        """Runs a script of several commands, of which none may fail."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def close(self) -> None:
        """Ends the server."""
        self.server.terminate()
        self.server.wait()


if __name__ == "__main__":
    serve(sys.argv[1])
