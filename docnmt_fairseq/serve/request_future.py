"""Future of a request: its sentences in order, filled by the thread of the translator."""

import asyncio
from typing import AsyncIterator, Dict, List, Optional, Sequence, Tuple

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.serve.limits import RequestError
from docnmt_fairseq.serve.scheduler import Job, Scheduler
from docnmt_fairseq.translate.encoded_text import EncodedText
from docnmt_fairseq.translate.lines import Translation
from docnmt_fairseq.translate.translator import DocumentTranslator


class RequestFuture:
    """Unfinished translation of a text; used in the event loop.

    Args:
        text: encoded text.
        translator: translator of the server.
        scheduler: queue to join.
        nbest: number of translations per sentence.
        deadline: deadline of the request, time of the event loop.

    Attributes:
        hypotheses: best hypothesis of each finished line.

    Raises:
        RequestError: the queue is full.
    """

    def __init__(
        self, text: EncodedText, translator: DocumentTranslator, scheduler: Scheduler, nbest: int, deadline: float
    ):
        self.text, self.translator, self.nbest, self.deadline = text, translator, nbest, deadline
        self.scheduler, self.loop = scheduler, asyncio.get_running_loop()
        self.hypotheses: Dict[int, Hypothesis] = {}
        self.translations: Dict[int, List[Translation]] = {}
        self.error: Optional[Exception] = None
        self.changed = asyncio.Event()
        self.job = Job(text, self._deliver, self._fail)
        if self.job.unfinished:
            scheduler.add(self.job)

    def _deliver(self, line: int, hypotheses: List[Hypothesis]) -> None:
        self.hypotheses[line] = hypotheses[0]
        self.translations[line] = [self.translator.translation(one) for one in hypotheses[: self.nbest]]
        self._notify()

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._notify()

    def _notify(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self.changed.set)
        except RuntimeError:  # the loop is closed
            self.cancel()

    def cancel(self) -> None:
        """Removes the text from the scheduler."""
        self.scheduler.cancel(self.job)

    async def sentences(self) -> AsyncIterator[Tuple[int, Sequence[Translation]]]:
        """Yields line and translations of each sentence, in order, as soon as possible.

        Raises:
            RequestError: the translator failed, or the deadline has passed.
        """
        try:
            for line in self.text.sentences:
                while line not in self.translations:
                    await self._change()
                yield line, self.translations.pop(line)
        finally:
            self.cancel()

    async def _change(self) -> None:
        if self.error is not None:
            raise RequestError(500, "translation of this text failed; see the server's log") from self.error
        try:
            async with asyncio.timeout_at(self.deadline):
                await self.changed.wait()
        except TimeoutError:
            raise RequestError(504, "not translated within the server's --timeout; send less, or later") from None
        self.changed.clear()
