"""The thread that owns the translator: one search, which requests join while others are under way."""

import logging
import threading
from typing import Iterator, Optional, Protocol, Sequence

from docnmt_fairseq.serve.backlog import Backlog
from docnmt_fairseq.translate.encoded_text import Chunk, Result

PATIENCE = 5.0  # seconds until the next sentence of a search that is to end

logger = logging.getLogger(__name__)


class Stream(Protocol):
    """The part of :class:`~docnmt_fairseq.translate.translator.DocumentTranslator` that is needed."""

    def stream(self, batches: Iterator[Optional[Sequence[Chunk]]], *, live: bool) -> Iterator[Result]:
        """Yields the sentences of chunks as they are finished."""


class Worker:
    """Translates what waits, until the backlog is closed.

    Args:
        translator: is used by this thread alone.
        backlog: what waits.
    """

    def __init__(self, translator: Stream, backlog: Backlog):
        self.translator, self.backlog = translator, backlog
        self.thread = threading.Thread(target=self._run, name="translator", daemon=True)

    def start(self) -> None:
        """Begins."""
        self.thread.start()

    def stop(self) -> None:
        """Ends, with what is under way unfinished; a search that gives no sentence within a while is left alone."""
        self.backlog.close()
        self.thread.join(timeout=PATIENCE)

    @property
    def alive(self) -> bool:
        """Whether it translates."""
        return self.thread.is_alive()

    def _run(self) -> None:
        while self.backlog.wait():
            try:
                for result in self.translator.stream(self.backlog.batches(), live=True):
                    self.backlog.finished(result)
                    if self.backlog.closed:
                        return
            except Exception as error:  # whatever it is, the next requests are to be served
                logger.exception("the translator failed")
                self.backlog.fail(error)
