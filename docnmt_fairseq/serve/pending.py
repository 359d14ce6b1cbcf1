"""What a request waits for: its sentences in their order, until it has them, is too late, or is given up."""

import asyncio
import time
from typing import AsyncIterator, Dict, List, Optional, Sequence, Tuple

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.serve.backlog import Backlog, Job
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.translate.encoded_text import EncodedText
from docnmt_fairseq.translate.lines import Translation
from docnmt_fairseq.translate.translator import DocumentTranslator


class Deadline:
    """When a request must be done.

    Args:
        seconds: that it has from now on.
    """

    def __init__(self, seconds: float):
        self.seconds, self.end = seconds, time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left; not below 0."""
        return max(0.0, self.end - time.monotonic())


class PendingTranslation:
    """A text whose translation is not finished; used in the event loop, given sentences by the translator's thread.

    Args:
        text: the text.
        translator: of the server.
        backlog: where it waits.
        nbest: translations of each sentence that are wanted.
        deadline: of the request.

    Attributes:
        hypotheses: by line, the best hypothesis of each sentence that is finished.
    """

    def __init__(
        self, text: EncodedText, translator: DocumentTranslator, backlog: Backlog, nbest: int, deadline: Deadline
    ):
        self.text, self.translator, self.backlog, self.nbest, self.deadline = text, translator, backlog, nbest, deadline
        self.loop = asyncio.get_running_loop()
        self.hypotheses: Dict[int, Hypothesis] = {}
        self.found: Dict[int, List[Translation]] = {}
        self.error: Optional[Exception] = None
        self.news = asyncio.Event()
        self.job = Job(text, self._deliver, self._fail)
        if self.job.left:
            backlog.add(self.job)

    def _deliver(self, line: int, hypotheses: List[Hypothesis]) -> None:
        self.hypotheses[line] = hypotheses[0]
        self.found[line] = [self.translator.translation(one) for one in hypotheses[: self.nbest]]
        self._wake()

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._wake()

    def _wake(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self.news.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self.drop()

    def drop(self) -> None:
        """Nobody waits any more."""
        self.backlog.drop(self.job)

    async def sentences(self) -> AsyncIterator[Tuple[int, Sequence[Translation]]]:
        """Yields every sentence as soon as it and all before it are there: its line, and its translations.

        Raises:
            Refusal: the translator failed, or the time is over.
        """
        try:
            for line in self.text.sentences:
                while line not in self.found:
                    await self._news()
                yield line, self.found.pop(line)
        finally:
            self.drop()

    async def _news(self) -> None:
        if self.error is not None:
            raise Refusal(500, "the translator failed at this text; the server's log says how") from self.error
        try:
            await asyncio.wait_for(self.news.wait(), self.deadline.left)
        except (TimeoutError, asyncio.TimeoutError):
            seconds = f"{self.deadline.seconds:g}"
            raise Refusal(504, f"not translated within {seconds} s; send less at once, or try again later") from None
        self.news.clear()
