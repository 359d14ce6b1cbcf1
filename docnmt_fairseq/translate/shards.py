"""Shards: the documents of all files shared out among several runs.

Each shard has whole documents that follow each other, about as many sentences as every other shard. A file of which
all documents are in one shard is written by it; of other files each shard writes a part
(:mod:`~docnmt_fairseq.translate.parts`).
"""

from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple

from docnmt_fairseq.errors import InputError


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
