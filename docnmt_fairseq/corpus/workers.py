"""Processes that share the work of one function, none of which can leave the others waiting when it is killed.

Each has a pipe of its own, and nothing is shared: no queue, and no lock that a killed one could hold for ever. Half an
answer ends as soon as the process has ended, as nobody else has its end of the pipe.
"""

import multiprocessing
import pickle
import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.tokenizers import SentenceFunction
from docnmt_fairseq.lifetime import end_with_parent

CHUNK = 200  # sentences that a process gets at a time
PATIENCE = 10.0  # seconds that the system has to end a killed process

Told = Tuple[Exception, str]  # an error, and where it came from
Answer = Tuple[List[str], Optional[Told]]
Pipe = Any  # Connection, or what stands for it on other systems


class WorkerKilled(Exception):
    """A process ended that had work to do."""


class Workers:
    """Processes that run until they are closed.

    Args:
        make: called once a process, gives the function of one sentence; picklable where processes cannot be forked.
        number: of processes.

    Raises:
        OSError: there cannot be so many.
    """

    def __init__(self, make: Callable[[], SentenceFunction], number: int):
        self._processes: Dict[Pipe, BaseProcess] = {}
        forks = "fork" in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if forks else None)  # forked, they start at once
        try:
            for _ in range(number):
                own, other = context.Pipe()
                inherited = [*self._processes, own] if forks else []
                process = context.Process(target=_work, args=(make, other, inherited), daemon=True)
                process.start()
                self._processes[own] = process
                other.close()  # or the end of the process would not be the end of the pipe
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the processes, whatever they are doing: they hold nothing that others need."""
        processes, self._processes = self._processes, {}
        for pipe, process in processes.items():
            pipe.close()
            process.kill()
        for process in processes.values():
            process.join(PATIENCE)

    def map(self, sentences: Sequence[str]) -> List[str]:
        """What the function gives for each sentence, in their order.

        Args:
            sentences: any number.

        Raises:
            WorkerKilled: a process ended; the others have, too.
            Exception: what the function raised, of the first sentences for which it was seen.
        """
        try:
            return self._map(sentences)
        except BaseException:
            self.close()
            raise

    def _map(self, sentences: Sequence[str]) -> List[str]:
        chunks = [sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK)]
        found: List[List[str]] = [[] for _ in chunks]
        if chunks and not self._processes:
            raise WorkerKilled
        free: List[Pipe] = list(self._processes)
        left = iter(range(len(chunks)))
        at_work: Dict[Pipe, int] = {}  # the chunk of each
        while True:
            for pipe, number in zip(free, left):  # each of them waits for it: neither side writes while the other does
                _exchange(pipe.send, chunks[number])
                at_work[pipe] = number
            if not at_work:
                return [sentence for answer in found for sentence in answer]
            free = list(wait(list(at_work)))
            for pipe in free:
                answer, told = _exchange(pipe.recv)
                if told is not None:
                    error, place = told
                    raise error from RuntimeError(place)
                found[at_work.pop(pipe)] = answer


def _exchange(call: Callable[..., Any], *values: Any) -> Any:
    try:
        return call(*values)
    except (EOFError, OSError) as error:
        raise WorkerKilled from error


def _work(make: Callable[[], SentenceFunction], pipe: Pipe, inherited: Sequence[Pipe]) -> None:
    """Answers until nobody asks any more.

    Args:
        make: see :class:`Workers`.
        pipe: to the process that asks.
        inherited: its ends of all pipes; held here, nobody would see its end.
    """
    for other in inherited:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all of them; the one that asks ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    function: Optional[SentenceFunction] = None
    with suppress(EOFError, OSError):
        while True:
            sentences = pipe.recv()
            try:
                function = function or make()
                answer: Answer = [function(sentence) for sentence in sentences], None
            except Exception as error:
                answer = [], _told(error)
            pipe.send(answer)


def _told(error: Exception) -> Told:
    """An error as the other process can raise it, and the place where it came from."""
    place = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # of a class that does not take back what it gives
        return RuntimeError(place), place
    return error, place
