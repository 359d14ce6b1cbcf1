"""Scheduler: texts of many requests take turns in one search, which runs in its own thread."""

import logging
import math
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterator, List, Optional, Set, Tuple, TypeVar

from prometheus_client import Counter

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.serve.limits import RequestError
from docnmt_fairseq.translate.encoded_text import Chunk, EncodedText, Result

if TYPE_CHECKING:
    from docnmt_fairseq.translate.translator import DocumentTranslator

TEXTS_IN_FLIGHT = 4  # maximum number of sentences in the search, as a multiple of that of one text
WINDOW = 30.0  # seconds over which throughput is measured
STOP_TIMEOUT = 5.0  # seconds to wait for the next sentence of a search that is stopped

logger = logging.getLogger(__name__)

Value = TypeVar("Value")


@dataclass(eq=False)
class Job:
    """Text to translate."""

    text: EncodedText
    deliver: Callable[[int, List[Hypothesis]], None]  # called with line and hypotheses of each finished sentence
    fail: Callable[[Exception], None]  # called with the error if the search fails; no sentence follows
    chunks: Deque[Chunk] = field(default_factory=deque)  # in the queue
    unfinished: int = 0  # number of sentences
    in_flight: int = 0  # number of sentences in the search
    started: List[Chunk] = field(default_factory=list)  # chunks with sentences in the search
    lines: Set[int] = field(default_factory=set)  # finished ones

    def __post_init__(self) -> None:
        self.chunks = deque(self.text.chunks)
        self.unfinished = sum(chunk.sentences for chunk in self.chunks)


class Scheduler:
    """Queue of jobs between the threads that accept requests and the one that translates.

    Jobs take turns chunk by chunk, each with a bounded number of sentences in the search, so that long texts do not
    delay short ones. If the search fails, the jobs in it are repeated one by one, so that only the cause fails.

    Args:
        max_waiting: maximum number of sentences in the queue.
        max_tokens: source tokens of a batch; a longer chunk is a batch of its own.
        max_in_flight: number of sentences in the search above which a job must wait.
    """

    def __init__(self, max_waiting: int, max_tokens: int, max_in_flight: int):
        self.max_waiting, self.max_tokens, self.max_in_flight = max_waiting, max_tokens, max_in_flight
        self.changed = threading.Condition()
        self.jobs: Dict[EncodedText, Job] = {}  # unfinished jobs
        self.queue: Deque[Job] = deque()  # jobs with waiting chunks, next one first
        self.retries: Deque[Job] = deque()  # jobs that were in the search when it failed
        self.calls: Deque[Tuple[Future[Any], Callable[[], Any]]] = deque()
        self.waiting = self.in_flight = 0  # sentences in the queue and in the search
        self.abandoned = 0  # sentences in the search whose job was cancelled
        self.closed = False
        self.throughput = Throughput()

    def add(self, job: Job) -> None:
        """Adds a job.

        Raises:
            RequestError: the queue is full, or the job is larger than the queue.
        """
        with self.changed:
            if job.unfinished > self.max_waiting:
                raise RequestError(413, f"{job.unfinished:,} sentences, but at most {self.max_waiting:,} are accepted")
            if self.waiting + job.unfinished > self.max_waiting:
                seconds = max(1, math.ceil(self.waiting / max(1.0, self.throughput.per_second())))
                raise RequestError(429, f"{self.waiting:,} sentences are waiting; try again in {seconds} s", seconds)
            self.jobs[job.text] = job
            self.queue.append(job)
            self.waiting += job.unfinished
            self.changed.notify()

    def cancel(self, job: Job) -> None:
        """Removes a job; results of its sentences in the search are discarded."""
        with self.changed:
            if job.text in self.jobs:
                self._remove(job)
            self.changed.notify()

    def call(self, function: Callable[[], Value]) -> "Future[Value]":
        """Calls a function in the thread of the search, between two steps; returns the future of its result."""
        future: Future[Value] = Future()
        with self.changed:
            self.calls.append((future, function))
            self.changed.notify()
        return future

    def close(self) -> None:
        """Ends :meth:`wait` and :meth:`batches`."""
        with self.changed:
            self.closed = True
            self.changed.notify()

    def wait(self) -> bool:
        """Waits for work; returns False when the scheduler is closed."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.queue or self.retries or self.calls)
            return not self.closed

    def batches(self) -> Iterator[Optional[List[Chunk]]]:
        """Yields the next chunks to translate without end, None if there are none."""
        while not self.closed:
            while self.calls:
                future, function = self.calls.popleft()
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(function())
                    except Exception as error:
                        future.set_exception(error)
            yield self._next() or None

    def _next(self) -> List[Chunk]:
        chunks: List[Chunk] = []
        tokens = skipped = 0
        with self.changed:
            queue = self._current_queue()
            while queue and skipped < len(queue) and self.in_flight < TEXTS_IN_FLIGHT * self.max_in_flight:
                job = queue[0]
                if not job.chunks:
                    queue.popleft()
                    continue
                queue.rotate(-1)
                if job.in_flight >= self.max_in_flight:
                    skipped += 1
                    continue
                tokens += job.chunks[0].tokens
                if chunks and tokens > self.max_tokens:
                    queue.rotate(1)
                    break
                chunks.append(self._start_chunk(job))
                skipped = 0
        return chunks

    def _current_queue(self) -> Deque[Job]:
        """Returns the jobs that take turns: all of them, or a repeated one alone."""
        if not self.retries:
            return self.queue
        first = self.retries[0]
        return deque([first] if first.in_flight or not self.abandoned else [])

    def _start_chunk(self, job: Job) -> Chunk:
        chunk = job.chunks.popleft()
        if not job.in_flight:
            job.started.clear()
        job.started.append(chunk)
        job.in_flight += chunk.sentences
        self.waiting -= chunk.sentences
        self.in_flight += chunk.sentences
        return chunk

    def _requeue(self, job: Job) -> None:
        """Puts the started chunks of a job back; lines that were finished are not delivered again."""
        job.chunks.extendleft(reversed(job.started))
        self.waiting += sum(chunk.sentences for chunk in job.started)
        self.in_flight -= job.in_flight
        job.in_flight = 0
        job.started.clear()

    def _remove(self, job: Job) -> None:
        """Removes a finished or cancelled job; a finished one may have requeued chunks."""
        del self.jobs[job.text]
        self.waiting -= sum(chunk.sentences for chunk in job.chunks)
        job.chunks.clear()
        self.in_flight -= job.in_flight
        self.abandoned += job.in_flight
        if job in self.retries:
            self.retries.remove(job)

    def finish(self, result: Result) -> None:
        """Delivers a finished sentence to its job."""
        with self.changed:
            self.throughput.count()
            job = self.jobs.get(result.text)
            if job is None:
                self.abandoned -= 1
                return
            job.in_flight, self.in_flight = job.in_flight - 1, self.in_flight - 1
            if result.line in job.lines:
                return
            job.lines.add(result.line)
            job.unfinished -= 1
            if not job.unfinished:
                self._remove(job)
        try:
            job.deliver(result.line, result.hypotheses)
        except Exception as error:
            self.cancel(job)
            job.fail(error)

    def fail(self, error: Exception) -> None:
        """Handles a failed search: a job that was alone in it fails, several are repeated one by one."""
        with self.changed:
            self.abandoned = 0
            affected = [job for job in self.jobs.values() if job.in_flight]
            for job in affected:
                self._requeue(job)
            failed = affected if self.retries else []
            if not self.retries:
                self.retries.extend(affected)
        for job in failed:
            self.cancel(job)
            job.fail(error)


class Throughput:
    """Number of finished sentences, in total and recently."""

    def __init__(self) -> None:
        self.times: Deque[float] = deque()
        self.total = Counter("docnmt_sentences", "Translated sentences", registry=None)

    def count(self) -> None:
        """Counts one sentence."""
        now = time.monotonic()
        self.total.inc()
        self.times.append(now)
        while self.times[0] < now - WINDOW:
            self.times.popleft()

    def per_second(self) -> float:
        """Returns recent sentences per second."""
        return len(self.times) / max(1.0, time.monotonic() - self.times[0]) if self.times else 0.0


class TranslatorThread:
    """Thread that translates the jobs of a scheduler until it is closed.

    Args:
        translator: used by this thread only.
        scheduler: source of jobs.
    """

    def __init__(self, translator: "DocumentTranslator", scheduler: Scheduler):
        self.translator, self.scheduler = translator, scheduler
        self.thread = threading.Thread(target=self._run, name="translator", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self.thread.start()

    def stop(self) -> None:
        """Stops the thread; unfinished sentences are lost."""
        self.scheduler.close()
        self.thread.join(timeout=STOP_TIMEOUT)

    @property
    def alive(self) -> bool:
        """True while the thread runs."""
        return self.thread.is_alive()

    def _run(self) -> None:
        while self.scheduler.wait():
            try:
                for result in self.translator.stream(self.scheduler.batches(), live=True):
                    self.scheduler.finish(result)
                    if self.scheduler.closed:
                        return
            except Exception as error:  # of any kind: the next requests are served
                logger.exception("translation failed")
                self.scheduler.fail(error)
