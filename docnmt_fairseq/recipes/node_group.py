"""Several machines that train together: a recipe runs on the first, the others wait and take part in its trainings.

They meet at a store of PyTorch on the first machine. In it the first calls for a training, as ``call/NUMBER``; the
others start their processes for it, and say there if that fails. All see the folder that the recipe writes.
"""

import contextlib
import json
import logging
import socket
import time
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Type

from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.recipes.processes import PLUGIN, fairseq, run

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

PATIENCE = 600.0  # seconds that machines wait for each other at the beginning
ANSWER = 60.0  # seconds in which one that is called has to answer
SHUTDOWN_WAIT = 30.0  # seconds that the first waits for the others at the end, less after an error
CONNECTION = 60.0  # seconds that PyTorch's store has for each question
POLL = 0.5

logger = logging.getLogger(__name__)


class Rendezvous(NamedTuple):
    """Where machines meet, how many they are, and what all of them must be told alike."""

    host: str
    port: int
    nodes: int
    processes: int
    cpu: bool

    def __str__(self) -> str:
        return f"--rendezvous {self.host}:{self.port}"

    def alike(self) -> str:
        """What is compared."""
        return f"--nodes {self.nodes} --processes {self.processes}{' --cpu' if self.cpu else ''}"

    def torchrun(self, rank: int, port: int) -> List[str]:
        """The options of torchrun on a machine, for a training that has a port for itself."""
        place = ["--master-addr", self.host, "--master-port", str(port)]
        return ["--nnodes", str(self.nodes), "--node-rank", str(rank), *place]


class NodeGroup:
    """The first machine's view: it calls the others. A context, at whose end they are sent home.

    Args:
        rendezvous: where.

    Raises:
        InputError: the place cannot be had.
    """

    def __init__(self, rendezvous: Rendezvous):
        self.nodes, self._rendezvous = rendezvous.nodes, rendezvous
        try:
            self._store = _store(rendezvous, first=True)
        except RuntimeError as error:
            raise InputError(f"{rendezvous}: nothing can be opened there: {first_line(error)}") from error
        if self._store.add("first", 1) > 1:
            raise InputError(f"{rendezvous}: there is a first machine already; give every machine its own --node-rank")
        self._store.set("alike", rendezvous.alike())
        self._calls, self._called = 0, 0.0

    def call(self, arguments: List[str], log: Path) -> List[str]:
        """Calls for a training; returns the options of torchrun here.

        Args:
            arguments: of fairseq-train.
            log: of this machine; those of others are beside it.

        Raises:
            InputError: not all machines came.
        """
        self._wait_for_all()
        port = _free_port()
        call = {"port": port, "arguments": arguments, "log": str(log)}
        self._send(call)
        return self._rendezvous.torchrun(0, port)

    def check(self) -> None:
        """Looks after the others.

        Raises:
            InputError: one failed, or does not answer.
        """
        for rank in self._others():
            if self._has("failed", rank):
                raise InputError(self._store.get(f"failed/{rank}").decode())
            late = time.monotonic() - self._called > ANSWER
            if late and not self._has(f"took/{self._calls - 1}", rank):
                raise InputError(f"machine {rank} does not answer any more; start the same command on all machines")

    def __enter__(self) -> "NodeGroup":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self._send({"end": "" if error is None else first_line(error)})
        until = time.monotonic() + (SHUTDOWN_WAIT if error is None else SHUTDOWN_WAIT / 6)
        while time.monotonic() < until and not all(map(self._has_left, self._others())):
            time.sleep(POLL)

    def _has_left(self, rank: int) -> bool:
        return self._has("left", rank) or self._has("failed", rank)

    def _send(self, call: Dict[str, Any]) -> None:
        self._store.set(f"call/{self._calls}", json.dumps(call))
        self._calls, self._called = self._calls + 1, time.monotonic()

    def _others(self) -> range:
        return range(1, self.nodes)

    def _has(self, name: str, rank: int) -> bool:
        return bool(self._store.check([f"{name}/{rank}"]))

    def _wait_for_all(self) -> None:
        until, told = time.monotonic() + PATIENCE, False
        while missing := [rank for rank in self._others() if not self._has("here", rank)]:
            names = ", ".join(map(str, missing))
            if not told:
                logger.info(f"{self._rendezvous}: waiting for --node-rank {names}")
                told = True
            if time.monotonic() > until:
                raise InputError(f"{self._rendezvous}: --node-rank {names} did not come; start the command there, too")
            time.sleep(POLL)


def run_worker_node(rendezvous: Rendezvous, rank: int, user_dir: Path = PLUGIN) -> None:
    """What another machine does: its part of each training that the first one calls for, until that is done.

    Args:
        rendezvous: where.
        rank: its number, from 1.
        user_dir: the package that fairseq-train imports.

    Raises:
        InputError: the first machine was told something else, failed, or is gone; a training failed here.
    """
    store = _join(rendezvous)
    store.set(f"here/{rank}", "")
    for number in count():
        call = json.loads(_await(store, f"call/{number}", rendezvous))
        if "end" in call:
            store.set(f"left/{rank}", "")
            if call["end"]:
                raise InputError(f"the first machine ended with an error: {call['end']}")
            return
        store.set(f"took/{number}/{rank}", "")
        log = Path(call["log"]).with_suffix(f".{rank}.log")
        logger.info(f"taking part in a training: {log}")
        together = rendezvous.torchrun(rank, call["port"])
        command = [*fairseq("train", rendezvous.processes, together), *call["arguments"], "--user-dir", str(user_dir)]
        try:
            log.parent.mkdir(exist_ok=True)  # a folder that another machine made may be seen late
            with open(log, "a", encoding="utf-8") as stream:
                run(command, stream, log, check=lambda: _check(store, rendezvous))
        except (InputError, OSError) as error:
            told = f"machine {rank}: {error}"
            with contextlib.suppress(RuntimeError):  # the first machine may be gone
                store.set(f"failed/{rank}", told)
            raise InputError(told) from error


def _join(rendezvous: Rendezvous) -> "TCPStore":
    """Connects with the first machine, as soon as it is there."""
    until = time.monotonic() + PATIENCE
    logger.info(f"{rendezvous}: looking for the first machine")
    while True:
        try:
            socket.create_connection((rendezvous.host, rendezvous.port), timeout=POLL).close()
            break
        except OSError as error:
            if time.monotonic() > until:
                raise InputError(f"{rendezvous}: no first machine (--node-rank 0) is there: {error}") from None
            time.sleep(POLL)
    store = _store(rendezvous, first=False)
    alike = _await(store, "alike", rendezvous)
    if alike != rendezvous.alike():
        raise InputError(f"{rendezvous.alike()}: the first machine has {alike}; give all the same")
    return store


def _await(store: "TCPStore", key: str, rendezvous: Rendezvous) -> str:
    """The value of a key, as soon as there is one."""
    while not _check(store, rendezvous, key):
        time.sleep(POLL)
    return str(store.get(key).decode())


def _check(store: "TCPStore", rendezvous: Rendezvous, key: str = "alike") -> bool:
    """Whether the first machine has a key; an error, if it is gone."""
    try:
        return bool(store.check([key]))
    except RuntimeError as error:
        raise InputError(f"{rendezvous}: the first machine is gone; start the same command on all machines") from error


def _store(rendezvous: Rendezvous, first: bool) -> "TCPStore":
    from datetime import timedelta

    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    patience = timedelta(seconds=CONNECTION)
    return TCPStore(rendezvous.host, rendezvous.port, None, first, timeout=patience, wait_for_workers=False)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])
