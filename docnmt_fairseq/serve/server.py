"""Server process: socket, signals, shutdown."""

import logging
import os
import signal
import socket
from types import FrameType
from typing import Optional, Sequence

import uvicorn

from docnmt_fairseq.serve.app import application
from docnmt_fairseq.serve.service import Service

MAX_CONNECTIONS = 1000
# Compiled matrix products that oneDNN and PyTorch keep, one for each shape: a server sees new shapes all the time, and
# with their default of 1,000 memory grows for hours.
CACHES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64", "LRU_CACHE_CAPACITY": "64"}

logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """uvicorn's server, which answers until running requests are finished.

    Args:
        service: service.
        origins: origins of other web pages that may use the API.
    """

    def __init__(self, service: Service, origins: Sequence[str] = ()):
        self.service = service
        config = uvicorn.Config(
            application(service, origins),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        super().__init__(config)

    def handle_exit(self, sig: int, frame: Optional[FrameType]) -> None:
        """Finishes running requests after the first signal, stops at once after the second."""
        if self.service.shutdown_end is None:
            logger.info(f"{signal.Signals(sig).name}: finishing running requests; press again to stop at once")
            self.service.shut_down()
        else:
            self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Returns True when the server must end."""
        return self.service.finished or await super().on_tick(counter)


def limit_caches() -> None:
    """Limits caches of matrix products, unless the environment does; call it before the first product."""
    for name, value in CACHES.items():
        os.environ.setdefault(name, value)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket; port 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


def serve(service: Service, listener: socket.socket, origins: Sequence[str] = ()) -> None:
    """Serves until a signal."""
    service.thread.start()
    try:
        Server(service, origins).run(sockets=[listener])
    finally:
        service.stop()
