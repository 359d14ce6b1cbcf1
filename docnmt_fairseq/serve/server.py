"""A service behind a socket, until a signal stops it: what is accepted is finished first, for a while."""

import logging
import signal
import socket
from types import FrameType
from typing import Optional

import uvicorn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.serve.app import application
from docnmt_fairseq.serve.service import Service

CONNECTIONS = 1000  # that are held at one time; more are refused

logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """uvicorn's, which takes requests to the last: to answer that it stops.

    Args:
        service: that answers.
    """

    def __init__(self, service: Service):
        self.service = service
        config = uvicorn.Config(
            application(service, self._crowded),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)

    def _crowded(self) -> str:
        """Said here, as uvicorn's own limit answers without a reason."""
        if len(self.server_state.connections) <= CONNECTIONS:
            return ""
        return f"{CONNECTIONS:,} connections are open already; try again in 1 s"

    def handle_exit(self, sig: int, frame: Optional[FrameType]) -> None:
        """The first signal lets what is under way finish, the second does not."""
        if self.service.stops_at is None:
            logger.info(f"{signal.Signals(sig).name}: finishes what is under way; once more to stop at once")
            self.service.drain()
        else:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Whether the server is to end."""
        return self.service.drained or await super().on_tick(counter)


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0: a free one.

    Raises:
        InputError: that address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"--host {host} --port {port}: cannot be listened at: {reason}") from error


def serve(service: Service, listener: socket.socket) -> None:
    """Serves until a signal comes."""
    service.start()
    try:
        Server(service).run(sockets=[listener])
    finally:
        service.stop()
