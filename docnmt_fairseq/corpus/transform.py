"""Changing every sentence of a delimited file while its marks stay as they are."""

from contextlib import closing, contextmanager
from itertools import islice
from typing import Any, Callable, Iterator, List, Optional, Sequence

from tqdm import tqdm

from docnmt_fairseq.corpus.files import PathLike, atomic_files, read_lines
from docnmt_fairseq.corpus.tokenizers import SentenceFunction
from docnmt_fairseq.corpus.workers import WorkerKilled, Workers
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark

BATCH = 20_000  # lines in memory at a time

BatchFunction = Callable[[List[str]], List[str]]


def transform_lines(lines: Sequence[str], transform: BatchFunction) -> List[str]:
    """Delimited text with its sentences transformed; marks stay where they are.

    Args:
        lines: sentences and marks.
        transform: from a list of sentences to an equally long list.
    """
    transformed = iter(transform([line for line in lines if not is_mark(line)]))
    return [line if is_mark(line) else next(transformed) for line in lines]


def transformed(
    source: PathLike, transform: BatchFunction, *, total: Optional[int] = None, title: str = ""
) -> Iterator[List[str]]:
    """Yields the lines of a delimited file in batches, its sentences transformed.

    Args:
        source: the delimited file.
        transform: from a list of sentences to an equally long list.
        total: number of lines, for the progress bar.
        title: of the progress bar.

    Raises:
        InputError: a sentence became empty or a mark; names file and line.
    """
    lines = read_lines(source)
    done = 0
    with tqdm(total=total, desc=title, unit=" lines", disable=None) as progress:
        for batch in iter(lambda: list(islice(lines, BATCH)), []):
            after = transform_lines(batch, transform)
            for number, (before, line) in enumerate(zip(batch, after), start=done + 1):
                if is_mark(line.strip()) and not is_mark(before):
                    raise InputError.at(source, number, f"{title}: nothing is left of this sentence; remove it")
            yield after
            done += len(batch)
            progress.update(len(batch))


def transform_file(source: PathLike, target: PathLike, transform: BatchFunction, **progress: Any) -> None:
    """Writes a delimited file with its sentences transformed; it appears only when complete.

    Args:
        source: the delimited file.
        target: where to write.
        transform: from a list of sentences to an equally long list.
        progress: see :func:`transformed`.

    Raises:
        InputError: a sentence became empty or a mark; names file and line.
    """
    with atomic_files(target) as (stream,):
        for batch in transformed(source, transform, **progress):
            stream.write("\n".join(batch) + "\n")


@contextmanager
def in_processes(make: Callable[[], SentenceFunction], workers: int) -> Iterator[BatchFunction]:
    """Gives a function of one sentence as a function of many that shares the work between processes.

    Args:
        make: picklable; called once a process, returns the function of one sentence.
        workers: number of processes; 1 stays in this one.

    Raises:
        InputError: a process was killed, or cannot be started.
    """
    if workers <= 1:
        function = make()
        yield lambda sentences: list(map(function, sentences))
        return
    make()  # an error of set-up is raised here, as it is
    remedy = "start again (what is finished is kept), with fewer --workers if it happens again"
    try:
        pool = Workers(make, workers)
    except OSError as error:
        raise InputError(
            f"--workers {workers}: no more processes can be started ({error.strerror}); {remedy}"
        ) from error

    def shared(sentences: List[str]) -> List[str]:
        try:
            return pool.map(sentences)
        except WorkerKilled as error:
            killed = f"--workers {workers}: one of the processes was killed, perhaps for want of memory"
            raise InputError(f"{killed}; {remedy}") from error

    with closing(pool):
        yield shared
