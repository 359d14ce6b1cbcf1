"""Documents of a split: a range, whole documents held out for other splits, or balanced registers or pronouns."""

import logging
import random
from collections import Counter
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence

from docnmt_fairseq.corpus import readers
from docnmt_fairseq.corpus.delimited import write_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.text import TextCounts, normalise_documents
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.pronouns import first_pronoun
from docnmt_fairseq.evaluation.register_rules import RULES
from docnmt_fairseq.recipes.dataset import HoldOut, SplitConfig

Documents = Callable[[], Iterable[Document]]  # reads a split from its beginning
ClassOf = Callable[[str], Optional[str]]  # class of a target sentence; None: of no class

logger = logging.getLogger(__name__)


def native_documents(name: str, split: SplitConfig, paths: Mapping[str, Path], reading: readers.Reading) -> Documents:
    """Returns a function that reads a split: normalised documents without pairs that have an empty side.

    Args:
        name: name of the split.
        split: its files and which of their documents it has.
        paths: files by name.
        reading: settings of readers.
    """
    first, end = split.documents or (0, None)

    def read() -> Iterator[Document]:
        corpora = (readers.read(split.format, [paths[file] for file in corpus], reading) for corpus in split.corpora)
        documents: Iterable[Document] = chain.from_iterable(corpora)
        if split.leave_out is not None:
            documents = _without(documents, paths[split.leave_out.listed], paths[split.leave_out.names])
        left = 0 if end is None else end - first
        for document in islice(normalise_documents(documents, "drop", TextCounts()), first, end):
            left -= 1
            yield document
        if left > 0:
            raise InputError(f"splits: {name}: documents: [{first}, {end}]: the files hold fewer documents")

    return read


def _without(documents: Iterable[Document], listed: Path, names: Path) -> Iterator[Document]:
    """Yields the documents whose names are not listed; see :class:`~docnmt_fairseq.recipes.dataset.LeaveOut`."""
    unwanted = {line for line in read_lines(listed) if line}
    of_document = [row.rpartition("\t")[2] for row in read_lines(names)]
    if unknown := unwanted - {*of_document}:
        raise InputError(f"{listed}: {min(unknown)}: no such document in {names}")
    number = -1
    for number, document in enumerate(documents):
        if number >= len(of_document):
            break
        if of_document[number] not in unwanted:
            yield document
    if number + 1 != len(of_document):
        raise InputError(f"{names}: {len(of_document):,} rows for another number of documents; give one row for each")


# --- Held-out splits ---


def shortened(document: Document, sentences: int) -> Document:
    """Returns the first sentences of a document."""
    paragraphs, left = [], sentences
    for paragraph in document.paragraphs:
        if left > 0:
            paragraphs.append(paragraph[:left])
            left -= len(paragraph)
    return Document(paragraphs, ended=document.ended[: max(len(paragraphs) - 1, 0)])


def held_out_runs(sizes: Sequence[int], hold_out: HoldOut) -> Dict[str, range]:
    """Returns the documents of each held-out split: consecutive ones from a random position.

    Args:
        sizes: number of sentences of every training document.
        hold_out: splits and their sizes.
    """
    rng = random.Random(hold_out.seed)
    for _ in range(1000):  # runs that are too short or overlap are drawn again
        runs: Dict[str, range] = {}
        for split in hold_out.splits:
            start = end = rng.randrange(len(sizes))
            while end < len(sizes) and sum(sizes[start:end]) < hold_out.sentences:
                end += 1
            runs[split] = range(start, end)
        taken = [document for run in runs.values() for document in run]
        enough = all(sum(sizes[run.start : run.stop]) >= hold_out.sentences for run in runs.values())
        if enough and len(taken) == len(set(taken)) < len(sizes):
            return runs
    raise InputError(f"{len(sizes):,} training documents are too few to hold out {', '.join(hold_out.splits)}")


def write_held_out(documents: Documents, hold_out: HoldOut, paths: Dict[str, List[Path]]) -> None:
    """Writes the training set and the splits cut from it as delimited text.

    No document is in two splits: the rest of the last document of a held-out split is dropped.

    Args:
        documents: training set.
        hold_out: splits to cut.
        paths: output files of all sides, by split.
    """
    runs = held_out_runs([len(document) for document in documents()], hold_out)
    held_out: Dict[str, List[Document]] = {split: [] for split in runs}

    def training() -> Iterator[Document]:
        for number, document in enumerate(documents()):
            split = next((split for split, run in runs.items() if number in run), None)
            if split is None:
                yield document
                continue
            left = hold_out.sentences - sum(map(len, held_out[split]))
            held_out[split].append(shortened(document, left))

    write_documents(training(), paths["train"])
    for split, of_split in held_out.items():
        write_documents(of_split, paths[split])


# --- Balanced classes of target sentences: registers or pronouns ---


def register_of(language: str) -> ClassOf:
    """Returns a function from a sentence to its register if it unambiguously shows one.

    Args:
        language: language of :data:`~docnmt_fairseq.evaluation.register_rules.RULES`.
    """
    return partial(RULES[language]().register_of, unambiguous_only=True)


def pronoun_of(pronouns: Collection[str]) -> ClassOf:
    """Returns a function from an English sentence to its first third-person pronoun if that is one of ``pronouns``."""

    def of(sentence: str) -> Optional[str]:
        first = first_pronoun(sentence)
        return first if first in pronouns else None

    return of


def repetitions(lines: List["Counter[str]"], seed: int = 1) -> List[int]:
    """Returns how often to repeat each document, so that all classes have about as many lines as the most frequent.

    A document counts for the class of most of its lines; without a majority it is used once.

    Args:
        lines: lines of every class, by document.
        seed: selects the documents that are repeated once more than others of their class.
    """
    classes = [_majority(counts) for counts in lines]
    totals: Counter[str] = Counter()
    for one, counts in zip(classes, lines):
        if one is not None:
            totals[one] += counts[one]
    times = [1] * len(lines)
    for one, total in sorted(totals.items()):
        whole, rest = divmod(max(totals.values()), total)
        of_class = [document for document, its in enumerate(classes) if its == one]
        random.Random(seed).shuffle(of_class)
        for document in of_class:
            times[document] = whole + (rest > 0)
            rest -= lines[document][one]
    return times


def _majority(counts: "Counter[str]") -> Optional[str]:
    """Returns the class with most lines; None if there are none, or on a tie."""
    first = counts.most_common(2)
    return first[0][0] if first and (len(first) == 1 or first[0][1] > first[1][1]) else None


def balanced(documents: Documents, class_of: ClassOf) -> Documents:
    """Returns a function that reads a training set with repeated documents, all copies after the originals.

    Args:
        documents: training set.
        class_of: class of a target sentence.
    """

    def read() -> Iterator[Document]:
        shown = ([class_of(target) for _, target, *_ in document.sentences()] for document in documents())
        lines = [Counter(one for one in classes if one is not None) for classes in shown]
        times = repetitions(lines)
        totals: Counter[str] = Counter()
        for counts, copies in zip(lines, times):
            totals.update({one: count * copies for one, count in counts.items()})
        copies = sum(times) - len(times)
        logger.info(f"train: {copies:,} copies of documents of rarer classes; lines by class: {dict(totals)}")
        for repetition in range(max(times)):
            for copies, document in zip(times, documents()):
                if copies > repetition:
                    yield document

    return read
