"""Distribution of documents over shards, and random samples of documents, in delimited files."""

from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Iterable, List, Sequence

import numpy as np

from docnmt_fairseq.boundaries import DOCUMENT
from docnmt_fairseq.corpus.data_bin import TextSize
from docnmt_fairseq.corpus.delimited import document_lines
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.files import atomic_files
from docnmt_fairseq.errors import InputError

Files = Sequence[Path]  # one per side

DOCUMENT_END = f"{DOCUMENT}\n".encode()


def write_shards(documents: Iterable[Document], shards: Sequence[Files], name: str) -> List[TextSize]:
    """Writes documents to the shards in turn and returns the size of each.

    Round-robin distribution makes all shards alike, whatever the order of the corpus. ``name`` appears in errors.

    Raises:
        InputError: fewer documents than shards, or a sentence that cannot be written.
    """
    sides, total = len(shards[0]), 0
    lines = [0] * len(shards)
    with atomic_files(*(file for shard in shards for file in shard)) as streams:
        for total, document in enumerate(documents, start=1):
            shard = (total - 1) % len(shards)
            for side in range(sides):
                text = document_lines(document, side)
                streams[shard * sides + side].write("\n".join(text) + "\n")
            lines[shard] += len(text)
        if total < len(shards):
            needed = f"for --shards {len(shards)}" if len(shards) > 1 else "with a sentence"
            raise InputError(f"{name}: contains {total} documents, at least {len(shards)} needed {needed}")
    return [TextSize(lines[shard], len(range(shard, total, len(shards)))) for shard in range(len(shards))]


def sample_documents(shards: Sequence[Files], output: Files, total: int, wanted: int, seed: int) -> TextSize:
    """Writes a random sample of the documents of shards in the order of the corpus and returns its size.

    The sample depends on the seed only, not on the number of shards.

    Args:
        shards: files as in :func:`write_shards`.
        output: one file per side.
        total: number of documents of all shards.
        wanted: number of documents of the sample; all if ``total`` is not larger.
        seed: seed of the sample.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(total)[:wanted])
    read = [0] * len(shards)
    lines = 0
    with atomic_files(*output) as streams, ExitStack() as stack:
        files = [[stack.enter_context(open(path, "rb")) for path in shard] for shard in shards]
        for number, shard in ((int(one) // len(shards), int(one) % len(shards)) for one in chosen):
            for stream, file in zip(streams, files[shard]):
                for _ in range(read[shard], number):
                    _read_document(file)
                text = _read_document(file)
                stream.write(b"".join(text).decode("utf-8"))
            read[shard] = number + 1
            lines += len(text)
    return TextSize(lines, len(chosen))


def _read_document(file: BinaryIO) -> List[bytes]:
    """Returns the lines of the next document, including the empty line at its end."""
    lines = []
    for line in file:
        lines.append(line)
        if line == DOCUMENT_END:
            break
    return lines
