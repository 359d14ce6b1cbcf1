"""Service: prepares, translates and inspects the texts of requests, independently of HTTP."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import AsyncIterator, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.base import takes_layout
from docnmt_fairseq.report.inspection import inspect
from docnmt_fairseq.report.page import Viewer
from docnmt_fairseq.report.views import views_of
from docnmt_fairseq.serve.limits import Limits, RequestError, before
from docnmt_fairseq.serve.scheduler import Job, Scheduler, TranslatorThread
from docnmt_fairseq.serve.source_text import SourceText
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask
from docnmt_fairseq.translate.encoded_text import EncodedText
from docnmt_fairseq.translate.formats.base import FormatLimits, TooLarge
from docnmt_fairseq.translate.lines import Translation
from docnmt_fairseq.translate.translator import DocumentTranslator

Value = TypeVar("Value")
UNPACKED = 4  # unpacked size of archives such as DOCX, as a multiple of max_bytes
LINES_PER_SENTENCE = 4  # maximum number of lines, including empty ones, as a multiple of max_waiting


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
        async with before(self.deadline):
            await self.changed.wait()
        self.changed.clear()


class Service:
    """One translator for many requests.

    Args:
        translator: translator that returns all hypotheses of its beam.
        limits: limits of requests.
        empty_lines: meaning of empty lines in text with one sentence per line.
    """

    def __init__(self, translator: DocumentTranslator, limits: Limits = Limits(), empty_lines: str = "document"):
        self.translator, self.limits, self.empty_lines = translator, limits, empty_lines
        self.format_limits = FormatLimits(UNPACKED * limits.max_bytes, limits.max_waiting)
        # Twice the slots of the search, so that they are never empty while chunks wait.
        self.scheduler = Scheduler(limits.max_waiting, translator.max_tokens, 2 * translator.engine.max_sentences)
        self.thread = TranslatorThread(translator, self.scheduler)
        self.preparation = ThreadPoolExecutor(1, thread_name_prefix="prepare")  # tokenizers are not thread-safe
        self.requests = 0  # number of running requests
        self.shutdown_end: Optional[float] = None

    def stop(self) -> None:
        """Stops; unfinished requests are lost."""
        self.thread.stop()
        self.preparation.shutdown(wait=False, cancel_futures=True)

    def shut_down(self) -> None:
        """Accepts no further requests; running ones have the shutdown timeout."""
        self.shutdown_end = time.monotonic() + self.limits.shutdown_timeout

    @property
    def finished(self) -> bool:
        """True if the service was shut down and has no running requests, or the timeout has passed."""
        return self.shutdown_end is not None and (not self.requests or time.monotonic() >= self.shutdown_end)

    @property
    def unavailable(self) -> str:
        """Reason for accepting no requests, or an empty string."""
        if self.shutdown_end is not None:
            return "the server is stopping"
        return "" if self.thread.alive else "the translator has stopped; see the server's log"

    def deadline(self) -> float:
        """Returns the deadline of a request that arrives now, time of the event loop."""
        return asyncio.get_running_loop().time() + self.limits.timeout

    async def submit(
        self, read: Callable[[], SourceText], alone: bool, nbest: int, deadline: float
    ) -> Tuple[SourceText, RequestFuture]:
        """Returns the text of a request and the future of its translation.

        Args:
            read: returns the text.
            alone: translate every sentence without context.
            nbest: number of translations per sentence.
            deadline: deadline of the request.

        Raises:
            RequestError: the text cannot be translated, or the queue is full.
        """
        async with before(deadline):
            source, text = await self.run_in_thread(lambda: self._prepare(read, alone))
        return source, RequestFuture(text, self.translator, self.scheduler, nbest, deadline)

    def _prepare(self, read: Callable[[], SourceText], alone: bool) -> Tuple[SourceText, EncodedText]:
        source = None
        try:
            source = read()
            self.format_limits.check(len(source.lines), "lines", source.name, LINES_PER_SENTENCE)
            source.check_lengths(self.limits.max_characters)
            line_inputs = {name: [lines] for name, lines in source.line_inputs.items()}
            return source, self.translator.prepare(
                [source.lines], [source.name], self.empty_lines, alone, None, **line_inputs
            )
        except InputError as error:
            message = str(error) if source is None else source.message(error)
            raise RequestError(413 if isinstance(error, TooLarge) else 422, message) from error

    def run_in_thread(self, function: Callable[[], Value]) -> "asyncio.Future[Value]":
        """Runs a function that takes long in the thread of preparation."""
        return asyncio.get_running_loop().run_in_executor(self.preparation, function)

    def inspection_problem(self, text: Optional[EncodedText] = None) -> str:
        """Returns the reason why a text cannot be inspected, or an empty string.

        Args:
            text: the text; None: any.
        """
        translator = self.translator
        if len(translator.models) > 1:
            return "ensembles cannot be inspected; serve a single model"
        if not isinstance(translator.task, DocumentTranslationTask) or not takes_layout(translator.models[0]):
            return "this kind of model cannot be inspected; only document_transformer and document_rnn"
        if translator.cuda:
            return "models on GPUs cannot be inspected; start the server with --cpu"
        if text is None:
            return ""
        if len(text.dataset.index) != 1:
            return "only single documents can be inspected"
        tokens = sum(chunk.tokens for chunk in text.chunks)
        if tokens > self.limits.max_inspected:
            return f"the document has {tokens:,} tokens; at most {self.limits.max_inspected:,} can be inspected"
        return ""

    async def inspect(self, source: SourceText, future: RequestFuture) -> Viewer:
        """Returns the attention of a translated text, computed in the thread of the translator between its steps."""
        ensemble, best = self.translator.ensemble, future.hypotheses
        codec, normalised = self.translator.codec, list(map(normalise, source.lines))
        lines = await self.run_in_thread(lambda: codec.encode_lines(0, normalised))

        def viewer() -> Viewer:
            inspection = inspect(
                ensemble,
                future.text.dataset,
                0,
                translate=lambda batch: [best[line]["tokens"].cpu() for line in batch["id"].tolist()],
                lines=lines,
            )
            return Viewer(inspection, views_of(ensemble.model, inspection))

        return await asyncio.wrap_future(self.scheduler.call(viewer))
