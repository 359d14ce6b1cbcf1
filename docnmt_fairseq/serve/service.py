"""What a server does, without HTTP: texts are prepared, wait, are translated, and looked into."""

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Optional, Tuple, TypeVar

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.base import takes_layout
from docnmt_fairseq.serve.backlog import Backlog
from docnmt_fairseq.serve.limits import Limits, Refusal
from docnmt_fairseq.serve.pending import Deadline, PendingTranslation
from docnmt_fairseq.serve.source_text import SourceText
from docnmt_fairseq.serve.worker import Worker
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask
from docnmt_fairseq.translate.encoded_text import EncodedText
from docnmt_fairseq.translate.formats.limits import TooLarge
from docnmt_fairseq.translate.translator import DocumentTranslator

Value = TypeVar("Value")


class Service:
    """One translator for many requests.

    Args:
        translator: it gives as many hypotheses as its beam.
        limits: of what is taken.
        empty_lines: what they end in text of a sentence a line.
    """

    def __init__(self, translator: DocumentTranslator, limits: Limits = Limits(), empty_lines: str = "document"):
        self.translator, self.limits, self.empty_lines = translator, limits, empty_lines
        # So many that slots are never empty for want of a further chunk.
        self.backlog = Backlog(limits.max_waiting, translator.max_tokens, 2 * translator.engine.most)
        self.worker = Worker(translator, self.backlog)
        # Texts are prepared one after another: what does it need not know of threads.
        self.preparing = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        self.requests = 0  # under way
        self.stops_at: Optional[float] = None

    def start(self) -> None:
        """Begins to translate."""
        self.worker.start()

    def stop(self) -> None:
        """Ends, with what is under way unfinished."""
        self.worker.stop()
        self.preparing.shutdown(wait=False, cancel_futures=True)

    def drain(self) -> None:
        """Takes no request any more; those under way have the grace time."""
        self.stops_at = time.monotonic() + self.limits.grace

    @property
    def drained(self) -> bool:
        """Whether nothing is under way any more, or the grace time is over."""
        return self.stops_at is not None and (not self.requests or time.monotonic() >= self.stops_at)

    @property
    def unready(self) -> str:
        """Why no request is taken; "": they are."""
        if self.stops_at is not None:
            return "the server is stopping"
        return "" if self.worker.alive else "the translator has ended; see the server's log"

    async def ask(
        self, make: Callable[[], SourceText], alone: bool, nbest: int, deadline: Deadline
    ) -> Tuple[SourceText, PendingTranslation]:
        """The text of a request, and its translation, which is pending.

        Args:
            make: gives the text.
            alone: every sentence is seen by itself.
            nbest: translations of each sentence that are wanted.
            deadline: of the request.

        Raises:
            Refusal: it cannot be translated, or there is no room.
        """
        beam = self.translator.engine.beam
        if nbest > beam:
            raise Refusal(422, f"nbest {nbest}: at most {beam}, the server's beam")
        preparing = self._in_thread(functools.partial(self._prepared, make, alone))
        try:
            source, text = await asyncio.wait_for(preparing, deadline.left)
        except (TimeoutError, asyncio.TimeoutError):
            raise Refusal(504, f"not prepared within {deadline.seconds:g} s; try again later") from None
        return source, PendingTranslation(text, self.translator, self.backlog, nbest, deadline)

    def _prepared(self, make: Callable[[], SourceText], alone: bool) -> Tuple[SourceText, EncodedText]:
        try:
            source = make()
        except TooLarge as error:
            raise Refusal(413, str(error)) from error
        except InputError as error:
            raise Refusal(422, str(error)) from error
        source.check(self.limits.max_characters)
        try:
            beside = {name: [told] for name, told in source.beside.items()}
            lines, name = [source.lines], [source.name]
            return source, self.translator.prepare(lines, name, self.empty_lines, alone, None, **beside)
        except InputError as error:
            raise source.refusal(error) from error

    def _in_thread(self, function: Callable[[], Value]) -> "asyncio.Future[Value]":
        return asyncio.get_running_loop().run_in_executor(self.preparing, function)

    async def finish(self, function: Callable[[], Value]) -> Value:
        """What a function gives that lays an answer out; not in the event loop, as it may take its time."""
        return await self._in_thread(function)

    def not_inspected(self, text: Optional[EncodedText] = None) -> str:
        """Why a text cannot be inspected, or no text at all; "": it can.

        Args:
            text: the text; None: any.
        """
        translator = self.translator
        if len(translator.models) > 1:
            return "an ensemble is not inspected; serve one of its models"
        if not isinstance(translator.task, DocumentTranslationTask) or not takes_layout(translator.models[0]):
            return "this kind of model reports nothing; only a document_transformer or document_rnn does"
        if translator.cuda:
            return "recordings are made on a CPU; start the server with --cpu"
        if text is None:
            return ""
        if len(text.dataset.index) != 1:
            return "only text of one document is inspected"
        tokens = sum(chunk.tokens for chunk in text.chunks)
        if tokens > self.limits.max_inspected:
            return f"the document has {tokens:,} tokens; at most {self.limits.max_inspected:,} are inspected"
        return ""
