"""Changing every sentence of a delimited file while its marks stay as they are."""

import multiprocessing
from contextlib import contextmanager
from itertools import islice
from typing import Callable, Iterator, List, Optional, Sequence

from tqdm import tqdm

from docnmt_fairseq.corpus.files import PathLike, atomic_files, read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.lifetime import end_with_parent
from docnmt_fairseq.marks import is_mark

BATCH = 20_000  # lines in memory at a time

SentenceFunction = Callable[[str], str]
BatchFunction = Callable[[List[str]], List[str]]


def transform_lines(lines: Sequence[str], transform: BatchFunction) -> List[str]:
    """Delimited text with its sentences transformed; marks stay where they are.

    Args:
        lines: sentences and marks.
        transform: from a list of sentences to an equally long list.
    """
    transformed = iter(transform([line for line in lines if not is_mark(line)]))
    return [line if is_mark(line) else next(transformed) for line in lines]


def transform_file(
    source: PathLike, target: PathLike, transform: BatchFunction, *, total: Optional[int] = None, title: str = ""
) -> int:
    """Writes a delimited file with its sentences transformed and returns how many tokens (by spaces) they have.

    Args:
        source: the delimited file.
        target: where to write; appears only when complete.
        transform: from a list of sentences to an equally long list.
        total: number of lines, for the progress bar.
        title: of the progress bar.

    Raises:
        InputError: a sentence became empty or a mark; names file and line.
    """
    lines = read_lines(source)
    tokens = done = 0
    with atomic_files(target) as (stream,), tqdm(total=total, desc=title, unit=" lines", disable=None) as progress:
        for batch in iter(lambda: list(islice(lines, BATCH)), []):
            transformed = transform_lines(batch, transform)
            for number, (before, line) in enumerate(zip(batch, transformed), start=done + 1):
                if not is_mark(before):
                    if is_mark(line.strip()):
                        raise InputError.at(source, number, f"{title}: nothing is left of this sentence; remove it")
                    tokens += len(line.split())
                stream.write(line + "\n")
            done += len(batch)
            progress.update(len(batch))
    return tokens


_function: Optional[SentenceFunction] = None


def _start_worker(make: Callable[[], SentenceFunction]) -> None:
    global _function
    end_with_parent()
    _function = make()


def _call(sentence: str) -> str:
    assert _function is not None
    return _function(sentence)


@contextmanager
def in_processes(make: Callable[[], SentenceFunction], workers: int) -> Iterator[BatchFunction]:
    """Gives a function of one sentence as a function of many that shares the work between processes.

    Args:
        make: picklable; called once a process, returns the function of one sentence.
        workers: number of processes; 1 stays in this one.
    """
    if workers <= 1:
        function = make()
        yield lambda sentences: list(map(function, sentences))
        return
    make()  # an error of set-up is raised here; a pool would start its workers again and again
    with multiprocessing.Pool(workers, _start_worker, (make,)) as pool:
        yield lambda sentences: pool.map(_call, sentences, chunksize=200)
