"""Shards: the documents of all files shared out among several runs, and their translations put together again.

Each shard has whole documents that follow each other, about as many sentences as every other shard. A file of which
all documents are in one shard is written by it; of other files each shard writes its part beside the name, and the one
that comes last makes the file of the parts.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Iterator, List, Sequence, Tuple

from docnmt_fairseq.corpus.files import partial_path
from docnmt_fairseq.errors import InputError

COPIED = 2**20  # bytes at a time


@dataclass(frozen=True)
class Shard:
    """One of several shards.

    Attributes:
        number: from 1 on.
        of: how many there are.

    Raises:
        InputError: there is no such one.
    """

    number: int = 1
    of: int = 1

    def __post_init__(self) -> None:
        if self.of < 1:
            raise InputError(f"--shards {self.of}: at least 1")
        if not 1 <= self.number <= self.of:
            raise InputError(f"--shard {self.number}: from 1 to {self.of}, the number of --shards")


def owners_of(sizes: Sequence[Sequence[int]], shards: int) -> Iterator[List[Tuple[int, int, int]]]:
    """For each file the shards that it is in: number of the shard, its first document, and the one after its last.

    Args:
        sizes: sentences of each document of each file.
        shards: how many there are.
    """
    total = max(sum(map(sum, sizes)), 1)
    before = 0
    for documents in sizes:
        ranges: List[Tuple[int, int, int]] = []
        for number, size in enumerate(documents):
            shard = min((2 * before + size) * shards // (2 * total), shards - 1) + 1
            first = number if not ranges or ranges[-1][0] != shard else ranges.pop()[1]
            ranges.append((shard, first, number + 1))
            before += size
        yield ranges or [(min(before * shards // total, shards - 1) + 1, 0, 0)]


def part_path(target: Path, shard: int, shards: int) -> Path:
    """Where a shard writes its part of a file."""
    return target.with_name(f"{target.name}.shard-{shard}-of-{shards}")


def put_together(target: Path, parts: Sequence[Path]) -> bool:
    """Makes a file of its parts and removes these, if all of them are there; returns whether they were.

    Several shards that end at the same time may do so at once: all write the same.
    """
    if not parts or not all(part.exists() for part in parts):
        return False
    own = partial_path(target).with_name(f"{partial_path(target).name}.{token_hex(8)}")
    try:
        with open(own, "wb") as whole:
            for part in parts:
                with open(part, "rb") as stream:
                    shutil.copyfileobj(stream, whole, COPIED)
        os.replace(own, target)
        for part in parts:
            part.unlink(missing_ok=True)
    except FileNotFoundError:  # another shard was faster
        return target.exists()
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        own.unlink(missing_ok=True)
    return True
