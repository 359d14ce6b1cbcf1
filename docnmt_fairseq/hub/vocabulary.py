"""Vocabularies of imported models: from embedding rows to fairseq dictionaries."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.files import atomic_files
from docnmt_fairseq.errors import InputError

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # first symbols of every fairseq dictionary
NEW = -1  # row of a symbol that the model does not have
FILLER, MASK = "madeupword", "<mask>"  # symbols that translation never uses
UNREACHABLE = -100.0  # bias of new symbols: probability 0 in float32, without an infinite loss
UNUSED_BIAS = UNREACHABLE * 0.8  # training changes the bias of unused symbols a little
BIAS = "decoder.output_projection.bias"


@dataclass(frozen=True)
class Vocabulary:
    """Symbols in the order of a fairseq dictionary.

    Attributes:
        symbols: symbols, fairseq's special ones first.
        rows: embedding row of each symbol in the imported model; :data:`NEW` without one.
    """

    symbols: Tuple[str, ...]
    rows: Tuple[int, ...]

    @classmethod
    def of_rows(cls, by_row: Sequence[Optional[str]], special: Mapping[str, int], name: Path) -> "Vocabulary":
        """Returns the vocabulary of a model with a symbol for paragraph boundaries.

        ``<p>`` stands between paragraphs in a data-bin, never in a sentence. It replaces a symbol that translation does
        not use, so that probabilities do not change; without such a symbol it is new.

        Args:
            by_row: symbol of every embedding row; None: unused row.
            special: rows of fairseq's special symbols that the model has.
            name: file in error messages.

        Raises:
            InputError: a duplicate symbol, or one that a dictionary cannot hold.
        """
        symbols = [f"{FILLER}{row:04d}" if symbol is None else symbol for row, symbol in enumerate(by_row)]
        rows = [special.get(symbol, NEW) for symbol in SPECIAL]
        rest = [row for row in range(len(symbols)) if row not in set(rows)]
        ordered = [*SPECIAL, *(symbols[row] for row in rest)]
        rows += rest
        if PARAGRAPH not in ordered:
            spare = [place for place, symbol in enumerate(ordered) if symbol.startswith(FILLER) or symbol == MASK]
            if spare:
                ordered[spare[-1]] = PARAGRAPH
            else:
                ordered.append(PARAGRAPH)
                rows.append(NEW)
        for symbol, number in Counter(ordered).items():
            if number > 1 or not symbol or "\n" in symbol or "\r" in symbol:
                raise InputError(f"{name}: the symbol {symbol!r} is duplicate, or cannot be in a dictionary")
        return cls(tuple(ordered), tuple(rows))

    @property
    def imported_rows(self) -> int:
        """Returns the number of embedding rows of the imported model."""
        return max(self.rows) + 1

    def reorder(self, values: Tensor, new: float = 0.0) -> Tensor:
        """Returns values by row in the order of the dictionary, [V, ...], with the value ``new`` for new symbols."""
        rows = torch.tensor(self.rows)
        if torch.equal(rows, torch.arange(len(values))):
            return values
        found = values[rows.clamp(min=0)]
        found[rows == NEW] = new
        return found

    def output_bias(self, values: Optional[Tensor]) -> Optional[Tensor]:
        """Returns the bias [V] of the logits, from [rows] or [1, rows]; None if it is zero."""
        values = torch.zeros(self.imported_rows) if values is None else values.flatten()
        return self.reorder(values, UNREACHABLE) if NEW in self.rows or values.any() else None

    def write(self, path: Path) -> None:
        """Writes the dictionary."""
        with atomic_files(path) as (stream,):
            stream.writelines(f"{symbol} 1\n" for symbol in self.symbols[len(SPECIAL) :])


def symbols_by_row(ids: Mapping[str, int], rows: int, name: Path) -> List[Optional[str]]:
    """Returns the symbol of every embedding row, None for unused rows, from the rows by symbol in the file ``name``.

    Raises:
        InputError: two symbols have one row, or a row does not exist.
    """
    found: List[Optional[str]] = [None] * rows
    for symbol, number in ids.items():
        if not isinstance(number, int) or not 0 <= number < rows or found[number] is not None:
            raise InputError(f"{name}: the vocabulary does not match the {rows:,} embeddings: {symbol!r} is {number}")
        found[number] = symbol
    return found
