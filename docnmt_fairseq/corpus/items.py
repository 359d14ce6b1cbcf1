"""Lines as items of a data-bin: numbers of a dictionary, in the memory-mapped files that fairseq reads.

The files are those of fairseq-preprocess to the byte; a block of lines is numbered at a time.
"""

import struct
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Dict, Iterable, Iterator, List, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from fairseq.data import Dictionary


class Items(NamedTuple):
    """Lines as numbers.

    Attributes:
        tokens: [T] of all lines, one after another, an end of sentence behind each.
        sizes: [lines] how many each line has.
    """

    tokens: np.ndarray
    sizes: np.ndarray


class Numbering:
    """The function from lines of tokens to items, as ``Dictionary.encode_line`` numbers them.

    Args:
        dictionary: fairseq's.
    """

    def __init__(self, dictionary: "Dictionary"):
        self._end = dictionary.eos()
        self._numbers = _Numbers(dictionary.indices)
        self._numbers.unknown = dictionary.unk()

    def __call__(self, lines: Iterable[str]) -> Items:
        """The items of lines of tokens with white space between."""
        words = [line.split() for line in lines]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        numbers = map(self._numbers.__getitem__, chain.from_iterable(words))
        return with_ends(lengths, np.fromiter(numbers, np.int64, int(lengths.sum())), self._end)


def with_ends(lengths: np.ndarray, numbers: np.ndarray, end: int) -> Items:
    """The items of lines, given how many numbers each has, and all of them; the end of sentence is added to each."""
    sizes = lengths + 1
    ends = np.cumsum(sizes) - 1
    tokens = np.full(int(sizes.sum()), end, dtype=np.int64)
    inner = np.ones(len(tokens), dtype=bool)
    inner[ends] = False
    tokens[inner] = numbers
    return Items(tokens, sizes)


class _Numbers(Dict[str, int]):
    """Symbol to number; what is none has that of the unknown."""

    unknown: int

    def __missing__(self, symbol: str) -> int:
        return self.unknown


class ItemWriter(AbstractContextManager["ItemWriter"]):
    """Writes ``PREFIX.bin`` as items come, and ``PREFIX.idx`` when the block ends without an error.

    Args:
        prefix: of both files.
        symbols: of the dictionary; fairseq chooses the type of numbers by them.
    """

    def __init__(self, prefix: Path, symbols: int):
        from fairseq.data.indexed_dataset import best_fitting_int_dtype

        self.prefix = prefix
        self.type = np.dtype(best_fitting_int_dtype(symbols))
        self.lines = self.tokens = self.empty = 0
        self._sizes: List[np.ndarray] = []
        self._file: BinaryIO = open(f"{prefix}.bin", "wb")  # noqa: SIM115  (closed below)

    def add(self, items: Items) -> None:
        """Appends items."""
        self._file.write(items.tokens.astype(self.type).tobytes())
        self._sizes.append(items.sizes.astype(np.int32))
        self.lines += len(items.sizes)
        self.tokens += len(items.tokens)
        self.empty += int((items.sizes == 1).sum())

    def __exit__(self, kind: object, *error: object) -> None:
        self._file.close()
        if kind is None:
            self._write_index()

    def _write_index(self) -> None:
        from fairseq.data.indexed_dataset import MMapIndexedDataset, _dtype_header_code

        with open(f"{self.prefix}.idx", "wb") as stream:
            stream.write(MMapIndexedDataset.Index._HDR_MAGIC)
            stream.write(struct.pack("<QBQ", 1, _dtype_header_code(self.type.type), self.lines))
            for sizes in self._sizes:
                stream.write(sizes.tobytes())
            for addresses in addresses_of(self._sizes, self.type.itemsize):
                stream.write(addresses.tobytes())


def addresses_of(blocks: Iterable[np.ndarray], item_size: int) -> Iterator[np.ndarray]:
    """Yields where each item begins in the file, in bytes, from blocks of sizes in numbers."""
    begin = 0
    for sizes in blocks:
        lengths = sizes.astype(np.int64) * item_size
        ends = begin + np.cumsum(lengths)
        yield ends - lengths
        begin = int(ends[-1]) if len(ends) else begin
