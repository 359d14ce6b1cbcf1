"""Files, folders and standard input to translate: what becomes which file, and nothing half-written."""

import logging
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple

from docnmt_fairseq.corpus.files import atomic_files, lines_of, read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark
from docnmt_fairseq.translate.lines import TranslatedLine

EMPTY_LINES = ("document", "paragraph")  # what they end
STANDARD = Path("-")  # standard input
TOGETHER = 10_000  # sentences of several files that are translated together, so that batches are full

logger = logging.getLogger(__name__)


class Translator(Protocol):
    """The part of :class:`~docnmt_fairseq.translate.translator.DocumentTranslator` that is needed."""

    def translate(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[str]]:
        """The translations, a line for each line."""

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """Every line with its translations and their scores."""


@dataclass(frozen=True)
class Job:
    """A text to translate.

    Attributes:
        name: for messages.
        target: where its translation goes, None: to standard output.
        sentences: that it has.
        read: gives its lines.
    """

    name: str
    target: Optional[Path]
    sentences: int
    read: Callable[[], List[str]]


def jobs_of(
    inputs: Sequence[Path], output: Optional[Path], pattern: str = "*", force: bool = False, resume: bool = False
) -> List[Job]:
    """The texts to translate, after all files were read once: what cannot be read is said before any translation.

    Args:
        inputs: one file or ``-``, which becomes the file ``output``; or several files, or folders with all that is in
            them, whose translations get the same names in the folder ``output`` (without ``.gz``).
        output: file or folder; None: standard output, for one text.
        pattern: of the names of a folder's files.
        force: replace translations that are there already.
        resume: leave them as they are.

    Raises:
        InputError: nothing to translate; a file that cannot be read; two files that would become the same one; a
            translation that is there already, or that would replace an input.
    """
    if output is None:
        if len(inputs) > 1 or inputs[0].is_dir():
            raise InputError("--output: give a folder for the translations of several texts")
        return [_job(inputs[0], None)]
    pairs = list(_pairs(inputs, output, pattern))
    if not pairs:
        raise InputError(f"--input {' '.join(map(str, inputs))}: no file {pattern} in it")
    sources = {source.resolve() for source, _ in pairs}
    targets = set()
    for source, target in pairs:
        if target.resolve() in sources:
            raise InputError(f"--output {target}: is an input; give another place")
        if target in targets:
            raise InputError(f"--output {target}: two inputs would become this file, one of them {source}")
        if target.is_dir():
            raise InputError(f"--output {target}: is a folder; give a file")
        targets.add(target)
    there = [target for _, target in pairs if target.exists()]
    if there and not (force or resume):
        more = f" (and {len(there) - 1:,} more)" if len(there) > 1 else ""
        raise InputError(f"--output {there[0]}: is there already{more}; --force replaces, --resume leaves it")
    if resume and there:
        logger.info(f"{len(there):,} of {len(pairs):,} files are there already")
    return [_job(source, target) for source, target in pairs if not (resume and target.exists())]


def _job(source: Path, target: Optional[Path]) -> Job:
    if source == STANDARD:  # can be read but once
        lines = list(lines_of(sys.stdin.buffer, "standard input"))
        return Job("standard input", target, _sentences(lines), lambda: lines)
    return Job(str(source), target, _sentences(read_lines(source)), lambda: list(read_lines(source)))


def _sentences(lines: Iterable[str]) -> int:
    return sum(not is_mark(line) for line in lines)


def _pairs(inputs: Sequence[Path], output: Path, pattern: str) -> Iterator[Tuple[Path, Path]]:
    if len(inputs) == 1 and not inputs[0].is_dir():
        yield inputs[0], output
        return
    if output.exists() and not output.is_dir():
        raise InputError(f"--output {output}: is a file; several inputs need a folder")
    for path in inputs:
        if path == STANDARD:
            raise InputError("--input -: standard input goes alone")
        if not path.is_dir():
            yield path, output / _name(path.name)
            continue
        if output.resolve().is_relative_to(path.resolve()):
            raise InputError(f"--output {output}: lies in the input folder {path}; give another place")
        for file in sorted(path.rglob(pattern)):
            relative = file.relative_to(path)
            if file.is_file() and not any(part.startswith(".") for part in relative.parts):
                yield file, output / relative.parent / _name(relative.name)


def _name(name: str) -> str:
    return name.removesuffix(".gz")


def translate_files(
    jobs: Sequence[Job],
    translator: Translator,
    empty_lines: str,
    progress: Callable[[int], object],
    scores: bool = False,
) -> None:
    """Writes the translations; each file appears when it is complete.

    Args:
        jobs: what to do.
        translator: does it.
        empty_lines, progress: see :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate`.
        scores: beside each translation write a table of all that the search gives of its lines, with scores.

    Raises:
        InputError: a sentence that is too long, a file that cannot be written; what was finished before stays.
    """
    for group in _groups(jobs):
        if scores:
            _translate_with_scores(group, translator, empty_lines, progress)
            continue
        names = [job.name for job in group]
        translations = translator.translate([job.read() for job in group], names, empty_lines, progress)
        for job, lines in zip(group, translations):
            with nullcontext([sys.stdout]) if job.target is None else atomic_files(job.target) as (stream,):
                stream.writelines(f"{line}\n" for line in lines)


def _translate_with_scores(
    group: Sequence[Job], translator: Translator, empty_lines: str, progress: Callable[[int], object]
) -> None:
    names = [job.name for job in group]
    translations = translator.translate_lines([job.read() for job in group], names, empty_lines, progress)
    for job, lines in zip(group, translations):
        if job.target is None:
            raise InputError("--scores: needs --output, beside which they are written")
        with atomic_files(job.target, table_of(job.target)) as (stream, table):
            stream.writelines(f"{line.text}\n" for line in lines)
            table.write("line\trank\tscore\ttranslation\n")
            for number, line in enumerate(lines, start=1):
                for rank, one in enumerate(line.translations, start=1):
                    table.write(f"{number}\t{rank}\t{one.score:.6f}\t{one.text}\n")


def table_of(target: Path) -> Path:
    """The file of a translation's scores, beside it."""
    return target.with_name(f"{target.name}.scores.tsv")


def _groups(jobs: Sequence[Job]) -> Iterator[List[Job]]:
    group: List[Job] = []
    sentences = 0
    for job in jobs:
        if group and sentences + job.sentences > TOGETHER:
            yield group
            group, sentences = [], 0
        group.append(job)
        sentences += job.sentences
    if group:
        yield group
