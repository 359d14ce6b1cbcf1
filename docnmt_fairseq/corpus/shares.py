"""Documents dealt out to parts of a text, and a sample of them, in delimited files."""

from pathlib import Path
from typing import BinaryIO, Iterable, List, NamedTuple, Sequence

import numpy as np

from docnmt_fairseq.corpus.delimited import document_lines
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.files import FilesByTurns, atomic_files, many_atomic_files
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import DOCUMENT

Files = Sequence[Path]  # of the sides

DOCUMENT_END = f"{DOCUMENT}\n".encode()


class Held(NamedTuple):
    """What a text holds: lines, and empty ones of them, which end documents."""

    lines: int
    documents: int


def deal(documents: Iterable[Document], parts: Sequence[Files]) -> List[Held]:
    """Writes the documents to the parts in turn, each part a file a side, and returns what each part holds.

    In turn, so that all parts are of one kind whatever the order of the corpus; the order within a part is kept.

    Raises:
        InputError: fewer documents than parts; a sentence that cannot be written.
    """
    sides = len(parts[0])
    lines, total = [0] * len(parts), 0
    with many_atomic_files([file for part in parts for file in part]) as files:
        for total, document in enumerate(documents, start=1):
            part = (total - 1) % len(parts)
            for side in range(sides):
                text = document_lines(document, side, sides)
                files.write(part * sides + side, "\n".join(text) + "\n")
            lines[part] += len(text)
        if total < len(parts):
            raise InputError(f"--shards {len(parts)}: there are only {total} documents; give at most so many shards")
    return [Held(lines[part], len(range(part, total, len(parts)))) for part in range(len(parts))]


def sample(parts: Sequence[Files], output: Files, total: int, wanted: int, seed: int) -> Held:
    """Writes documents of a text that was dealt out, in the order of the corpus, and returns what that text holds.

    Every set of so many documents is equally probable; which it is depends on the seed alone, not on the parts.

    Args:
        parts: as of :func:`deal`.
        output: a file a side.
        total: documents of all parts.
        wanted: documents of the sample; with ``total`` or more it is the whole text.
        seed: of the choice.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(total)[:wanted])
    passed = [0] * len(parts)
    lines = 0
    with atomic_files(*output) as streams, FilesByTurns() as files:
        for part, number in ((int(one) % len(parts), int(one) // len(parts)) for one in chosen):
            for stream, path in zip(streams, parts[part]):
                for _ in range(passed[part], number):
                    _document(files.opened(path))
                text = _document(files.opened(path))
                stream.write(b"".join(text).decode("utf-8"))
            passed[part] = number + 1
            lines += len(text)
    return Held(lines, len(chosen))


def _document(lines: BinaryIO) -> List[bytes]:
    """The lines of the next document, its closing empty line included."""
    found = []
    for line in lines:
        found.append(line)
        if line == DOCUMENT_END:
            break
    return found
