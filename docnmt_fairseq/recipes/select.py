"""Splits that are not files of their own: cut from the training set, or the first documents of each (a smoke run)."""

import random
from itertools import chain, islice
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.delimited import write_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.text import TextCounts, normalise_documents
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import HoldOut, SplitConfig

Documents = Callable[[], Iterable[Document]]


def native_documents(split: SplitConfig, paths: Sequence[Sequence[Path]], reading: readers.Reading) -> Documents:
    """The function that reads a split anew: its documents, normalised, pairs with an empty side left out."""

    def read() -> Iterator[Document]:
        corpora = (readers.read(split.format, corpus, reading) for corpus in paths)
        return normalise_documents(chain.from_iterable(corpora), "drop", TextCounts())

    return read


def part(documents: Documents, wanted: Sequence[int], where: str) -> Documents:
    """The function that reads a part of a split anew.

    Args:
        documents: reads the split.
        wanted: the first document, from 0, and the one after the last.
        where: of the configuration, for messages.

    Raises:
        InputError: in reading: there are not so many.
    """
    first, end = wanted

    def read() -> Iterator[Document]:
        left = end - first
        for document in islice(documents(), first, end):
            left -= 1
            yield document
        if left:
            raise InputError(f"{where}: documents: [{first}, {end}]: the files hold fewer, or are others")

    return read


def shortened(document: Document, sentences: int) -> Document:
    """The first sentences of a document."""
    paragraphs, left = [], sentences
    for paragraph in document.paragraphs:
        if left > 0:
            paragraphs.append(paragraph[:left])
            left -= len(paragraph)
    return Document(paragraphs, ended=document.ended[: max(len(paragraphs) - 1, 0)])


def held_out_runs(sizes: Sequence[int], hold_out: HoldOut) -> Dict[str, range]:
    """The documents of each held-out split: whole ones from a random place on, until there are enough.

    Args:
        sizes: sentences of every document of the training set.
        hold_out: what is wanted.

    Raises:
        InputError: the training set has not enough sentences.
    """
    chance = random.Random(hold_out.seed)
    needed = hold_out.sentences * len(hold_out.splits)
    if sum(sizes) < 2 * needed:
        raise InputError(f"{sum(sizes):,} training sentences are too few to take {needed:,} of them out")
    for _ in range(1000):  # a place too near the end, or two that overlap, are drawn anew
        runs: Dict[str, range] = {}
        for split in hold_out.splits:
            start = end = chance.randrange(len(sizes))
            while end < len(sizes) and sum(sizes[start:end]) < hold_out.sentences:
                end += 1
            runs[split] = range(start, end)
        taken = [document for run in runs.values() for document in run]
        enough = all(sum(sizes[run.start : run.stop]) >= hold_out.sentences for run in runs.values())
        if enough and len(taken) == len(set(taken)) < len(sizes):
            return runs
    raise InputError(f"{len(sizes):,} training documents are too few to take {hold_out.splits} out of them")


def write_held_out(documents: Documents, hold_out: HoldOut, paths: Dict[str, List[Path]]) -> None:
    """Writes the training set and the splits cut from it, as delimited text.

    A document is in one split only: of the last one that a held-out split reaches into, the rest is left out.

    Args:
        documents: reads the training set.
        hold_out: what to cut.
        paths: files of both sides, by split.
    """
    runs = held_out_runs([len(document) for document in documents()], hold_out)
    kept: Dict[str, List[Document]] = {split: [] for split in runs}

    def training() -> Iterator[Document]:
        for number, document in enumerate(documents()):
            split = next((split for split, run in runs.items() if number in run), None)
            if split is None:
                yield document
                continue
            left = hold_out.sentences - sum(map(len, kept[split]))
            kept[split].append(shortened(document, left))

    write_documents(training(), paths["train"])
    for split, several in kept.items():
        write_documents(several, paths[split])


def first(documents: Documents, most: Optional[int]) -> Iterator[Document]:
    """The first documents of a split; None: all."""
    return islice(documents(), most)


def write_all(documents: Documents, paths: List[Path]) -> None:
    """Writes a split as delimited text."""
    write_documents(documents(), paths)
