"""What waits for the translator: chunks of many texts, which take turns."""

import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Callable, Deque, Dict, Iterator, List, Optional, Set

from docnmt_fairseq.data.concatenation import Hypothesis
from docnmt_fairseq.serve.limits import Refusal
from docnmt_fairseq.translate.encoded_text import Chunk, EncodedText, Result

MOST_AHEAD = 4  # times what a text may have with the translator, that all texts together may have there
WINDOW = 30.0  # seconds whose sentences tell how fast the translator is


@dataclass(eq=False)
class Job:
    """A text that is to be translated.

    Attributes:
        text: the text.
        deliver: is given each sentence as it is finished, its line and hypotheses.
        fail: is told what went wrong where the translator failed; no sentence follows.
        chunks: those that wait.
        left: sentences that are not finished.
        in_flight: sentences that are with the translator.
        handed_out: chunks of which some may be there.
        lines: that are finished.
    """

    text: EncodedText
    deliver: Callable[[int, List[Hypothesis]], None]
    fail: Callable[[Exception], None]
    chunks: Deque[Chunk] = field(default_factory=deque)
    left: int = 0
    in_flight: int = 0
    handed_out: List[Chunk] = field(default_factory=list)
    lines: Set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.chunks = deque(self.text.chunks)
        self.left = sum(chunk.sentences for chunk in self.chunks)


class Backlog:
    """The jobs of a server, handed from the threads that take requests to the one that translates.

    Jobs take turns chunk by chunk, and each has but few sentences with the translator, where they take turns again: so
    a long text does not keep short ones waiting. When the translator fails, the jobs that it had are tried again, each
    alone, so that only one that it fails at fails.

    Args:
        most: sentences that wait.
        max_tokens: source tokens of a batch; a longer chunk is a batch by itself.
        ahead: a job that has so many sentences with the translator gets no further chunk there.
    """

    def __init__(self, most: int, max_tokens: int, ahead: int):
        self.most, self.max_tokens, self.ahead = most, max_tokens, ahead
        self.changed = threading.Condition()
        self.jobs: Dict[EncodedText, Job] = {}  # by their texts, until they are finished
        self.turns: Deque[Job] = deque()  # those with chunks that wait
        self.suspects: Deque[Job] = deque()  # those that the translator had when it failed
        self.calls: Deque[Callable[[], None]] = deque()
        self.waiting = self.under_way = 0  # sentences that wait, and that are with the translator for somebody
        self.for_nobody = 0  # and those there that nobody wants any more
        self.closed = False
        self.speed = Speed()

    def add(self, job: Job) -> None:
        """A job waits from now on.

        Raises:
            Refusal: too much waits already, or it alone is too much.
        """
        with self.changed:
            if job.left > self.most:
                raise Refusal(
                    413, f"{job.left:,} sentences, but at most {self.most:,} are taken at once; divide the text"
                )
            if self.waiting + job.left > self.most:
                seconds = max(1, math.ceil(self.waiting / max(1.0, self.speed.per_second())))
                raise Refusal(429, f"{self.waiting:,} sentences wait already; try again in {seconds} s", seconds)
            self.jobs[job.text] = job
            self.turns.append(job)
            self.waiting += job.left
            self.changed.notify()

    def drop(self, job: Job) -> None:
        """What waits of a job is given up; what is with the translator finishes for nobody."""
        with self.changed:
            if job.text in self.jobs:
                self._end(job)
            self.changed.notify()

    def call(self, function: Callable[[], None]) -> None:
        """Has a function called where the translator is; it may not raise."""
        with self.changed:
            self.calls.append(function)
            self.changed.notify()

    def close(self) -> None:
        """Ends :meth:`wait`; nothing is to be added any more."""
        with self.changed:
            self.closed = True
            self.changed.notify()

    def wait(self) -> bool:
        """Waits for something to do; False: there will be nothing any more."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.turns or self.suspects or self.calls)
            return not self.closed

    def batches(self) -> Iterator[Optional[List[Chunk]]]:
        """Yields what is to be translated next, without end: None where nothing waits."""
        while not self.closed:
            while self.calls:
                self.calls.popleft()()
            yield self._next() or None

    def _next(self) -> List[Chunk]:
        chunks: List[Chunk] = []
        tokens = passed = 0
        with self.changed:
            turns = self._turns()
            while turns and passed < len(turns) and self.under_way < MOST_AHEAD * self.ahead:
                job = turns[0]
                if not job.chunks:
                    turns.popleft()
                    continue
                turns.rotate(-1)
                if job.in_flight >= self.ahead:
                    passed += 1
                    continue
                tokens += job.chunks[0].tokens
                if chunks and tokens > self.max_tokens:
                    turns.rotate(1)
                    break
                chunks.append(self._hand_out(job))
                passed = 0
        return chunks

    def _turns(self) -> Deque[Job]:
        """Who takes turns: all, or a suspect alone."""
        if not self.suspects:
            return self.turns
        first = self.suspects[0]
        return deque([first] if first.in_flight or not self.for_nobody else [])

    def _hand_out(self, job: Job) -> Chunk:
        """The next chunk of a job, which goes to the translator."""
        chunk = job.chunks.popleft()
        if not job.in_flight:
            job.handed_out.clear()
        job.handed_out.append(chunk)
        job.in_flight += chunk.sentences
        self.waiting -= chunk.sentences
        self.under_way += chunk.sentences
        return chunk

    def _requeue(self, job: Job) -> None:
        """What the translator has of a job waits again; a sentence that is finished again is not delivered again."""
        job.chunks.extendleft(reversed(job.handed_out))
        self.waiting += sum(chunk.sentences for chunk in job.handed_out)
        self.under_way -= job.in_flight
        job.in_flight = 0
        job.handed_out.clear()

    def _end(self, job: Job) -> None:
        """A job is finished, or given up; what is left of it with the translator is for nobody.

        Pieces may wait of one that is finished, too: those that had been, when the translator failed at others.
        """
        del self.jobs[job.text]
        self.waiting -= sum(chunk.sentences for chunk in job.chunks)
        job.chunks.clear()
        self.under_way -= job.in_flight
        self.for_nobody += job.in_flight
        if job in self.suspects:
            self.suspects.remove(job)

    def finished(self, result: Result) -> None:
        """Hands a sentence to the job that it is of, if anybody still wants it."""
        with self.changed:
            self.speed.count()
            job = self.jobs.get(result.text)
            if job is None:
                self.for_nobody -= 1
                return
            job.in_flight, self.under_way = job.in_flight - 1, self.under_way - 1
            if result.line in job.lines:
                return
            job.lines.add(result.line)
            job.left -= 1
            if not job.left:
                self._end(job)
        try:
            job.deliver(result.line, result.hypotheses)
        except Exception as error:
            self.drop(job)
            job.fail(error)

    def fail(self, error: Exception) -> None:
        """The translator failed, and has nothing any more: a job that was alone there is told, others are suspects."""
        with self.changed:
            self.for_nobody = 0
            had = [job for job in self.jobs.values() if job.in_flight]
            for job in had:
                self._requeue(job)
            failed = had if self.suspects else []
            if not self.suspects:
                self.suspects.extend(had)
        for job in failed:
            self.drop(job)
            job.fail(error)


class Speed:
    """How many sentences were finished, in all and of late."""

    def __init__(self) -> None:
        self.times: Deque[float] = deque()
        self.total = 0

    def count(self) -> None:
        """One more is finished."""
        now = time.monotonic()
        self.total += 1
        self.times.append(now)
        while self.times[0] < now - WINDOW:
            self.times.popleft()

    def per_second(self) -> float:
        """Sentences a second; 0 where none were."""
        return len(self.times) / max(1.0, time.monotonic() - self.times[0]) if self.times else 0.0
