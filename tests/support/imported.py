"""Commands of the package and of fairseq without the time of importing both.

A server imports them once. Files named ``docnmt``, ``fairseq-train``, …, ``python`` hand it their arguments, folder,
environment and open files; it forks, and runs the command in the child. They hand on the signal to end, too. A command
that starts ``python -m MODULE`` comes back to the server; other calls of ``python`` are what they always are.
"""

import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NoReturn

FAIRSEQ = {f"fairseq-{name}": name for name in ("train", "generate", "interactive", "validate", "preprocess")}
FAIRSEQ["fairseq-hydra-train"] = "hydra_train"
COMMANDS = {"docnmt_fairseq": "docnmt", **{f"fairseq_cli.{name}": command for command, name in FAIRSEQ.items()}}
CLIENT = """#!{python} -SE
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = dict(command={command!r}, arguments=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ))
    call.update(python={python!r}, clients={clients!r}, behind={behind!r}, instead={instead!r})
    socket.send_fds(server, [b"!"], [0, 1, 2])
    server.sendall((json.dumps(call) + "\\n").encode())
    answers = server.makefile()
    process = int(answers.readline())
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(process, number))
    sys.exit(int(answers.readline() or 1))
"""
SLOW_TO_IMPORT = ("torch._dynamo", "sacrebleu", "sacremoses", "matplotlib.pyplot", "scipy.stats")


def end_with_parent():
    """Makes Linux end the calling process with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Imported:
    """Server.

    Args:
        folder: folder of socket and log.
        package: folder that has the package.
    """

    def __init__(self, folder: Path, package: Path):
        self.address = str(folder / "socket")
        self.path = f"{package}:{Path(__file__).resolve().parents[2]}"
        log = folder / "log"  # an unread pipe would fill
        with log.open("w", encoding="utf-8") as errors:
            self.server = subprocess.Popen(
                [sys.executable, "-m", __name__, self.address], cwd=package, text=True, stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": self.path, "PYTHONWARNINGS": "ignore"}, stderr=errors,
                preexec_fn=end_with_parent,
            )  # fmt: skip
        assert self.server.stdout is not None
        assert "ready\n" in iter(self.server.stdout.readline, ""), log.read_text(encoding="utf-8")

    def commands(
        self, folder: Path, behind: Mapping[str, List[str]] = {}, instead: Mapping[str, str] = {}
    ) -> Dict[str, str]:
        """Writes the client programs of the commands; returns an environment that finds them.

        Args:
            folder: folder of the programs.
            behind: arguments added after the others, by command, or command and subcommand.
            instead: values of options that replace given ones.
        """
        known = {"python": sys.executable, "address": self.address, "clients": str(folder)}
        for command in ("docnmt", "python", *FAIRSEQ):
            text = CLIENT.format(**known, command=command, behind=dict(behind), instead=dict(instead))
            (folder / command).write_text(text, encoding="utf-8")
            (folder / command).chmod(0o755)
        return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": self.path}

    def close(self) -> None:
        """Stops the server."""
        self.server.terminate()
        self.server.wait()


def _serve(address: str) -> None:
    """Runs commands until the parent ends it."""
    for module in (*(f"fairseq_cli.{name}" for name in FAIRSEQ.values()), *SLOW_TO_IMPORT):
        importlib.import_module(module)
    importlib.import_module("docnmt_fairseq").register()
    importlib.import_module("tests.support.composed").compose_with_cache()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                _answer(client)
            client.close()  # or a child that dies would leave its command waiting


def _answer(client: socket.socket) -> None:
    """Runs one command in this process, and ends it."""
    _, files, _, _ = socket.recv_fds(client, 1, 3)
    call = json.loads(client.makefile().readline())
    client.sendall(f"{os.getpid()}\n".encode())
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    command, arguments = call["command"], call["arguments"]
    small = call["behind"].get(command) or call["behind"].get(" ".join([command, *arguments[:1]]), [])
    if command == "python":
        words = arguments[1:] if arguments[:1] == ["-u"] else arguments
        if words[:1] != ["-m"]:
            done = subprocess.run([call["python"], *arguments])
            client.sendall(f"{done.returncode}\n".encode())
            os._exit(0)
        command, arguments = COMMANDS.get(words[1], words[1]), words[2:]
        sys.path[:0] = [call["folder"], *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    sys.executable = str(Path(call["clients"]) / "python")
    for place, option in enumerate(arguments[:-1]):
        arguments[place + 1] = call["instead"].get(option, arguments[place + 1])
    # fairseq knows the imported package by its path, and the folder may have a link to it.
    package = os.path.join(call["folder"], "docnmt_fairseq")
    for given in ("docnmt_fairseq", f"common.user_dir={package}"):
        real = given.replace(package, "docnmt_fairseq").replace("docnmt_fairseq", os.path.realpath(package))
        arguments = [real if argument == given else argument for argument in arguments]
    sys.argv = [command, *arguments, *small]
    sys.orig_argv = [sys.executable, *call["arguments"]]
    os.execve = _begin_anew
    status = 1
    try:
        status = _entry_point(command)() or 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(f"{status}\n".encode())
    os._exit(0)


def _begin_anew(program: str, words: List[str], environment: Mapping[str, str]) -> NoReturn:
    """Runs another program instead of replacing this process, which must answer."""
    raise SystemExit(subprocess.run(words, executable=program, env=environment).returncode)


def _entry_point(command: str) -> Callable[[], Any]:
    """Returns the function of a command, or of ``python -m`` with the name of a module."""
    if command == "docnmt":
        return importlib.import_module("docnmt_fairseq.cli").main
    if command in FAIRSEQ:
        return importlib.import_module(f"fairseq_cli.{FAIRSEQ[command]}").cli_main
    return lambda: runpy.run_module(command, run_name="__main__", alter_sys=True) and 0


if __name__ == "__main__":
    _serve(sys.argv[1])
