"""From a released model's vocabulary to a fairseq dictionary, and its embeddings into that order."""

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.files import atomic_files
from docnmt_fairseq.errors import InputError

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # what every fairseq dictionary begins with
NEW = -1  # the row of a symbol that the released model does not have
# Symbols that models have and translation never uses; the paragraph mark takes the place of one.
FILLER, MASK = "madeupword", "<mask>"
NEVER = -100.0  # bias of new symbols: no share of the probabilities in float32, no infinite loss


@dataclass(frozen=True)
class Vocabulary:
    """Symbols in the order of a fairseq dictionary.

    Attributes:
        symbols: fairseq's special ones first.
        rows: of each, in the released embeddings; :data:`NEW`: it has none.
    """

    symbols: Tuple[str, ...]
    rows: Tuple[int, ...]

    @classmethod
    def of_rows(cls, by_row: Sequence[Optional[str]], special: Mapping[str, int], name: Path) -> "Vocabulary":
        """The vocabulary of a released model, with a symbol for paragraphs.

        ``<p>`` stands between paragraphs in a data-bin, but never in a sentence. It takes the row of a symbol that
        translation does not use, so that probabilities stay as they are; where there is none, it is new.

        Args:
            by_row: the symbol of every row of the embeddings; None: there is none, the row only fills up.
            special: rows of fairseq's special symbols, those that the model has.
            name: of the file, for messages.

        Raises:
            InputError: a symbol comes twice, or cannot stand in a dictionary.
        """
        symbols = [f"{FILLER}{row:04d}" if symbol is None else symbol for row, symbol in enumerate(by_row)]
        rows = [special.get(symbol, NEW) for symbol in SPECIAL]
        rest = [row for row in range(len(symbols)) if row not in set(rows)]
        named = [*SPECIAL, *(symbols[row] for row in rest)]
        rows += rest
        if PARAGRAPH not in named:
            spare = [place for place, symbol in enumerate(named) if symbol.startswith(FILLER) or symbol == MASK]
            if spare:
                named[spare[-1]] = PARAGRAPH
            else:
                named.append(PARAGRAPH)
                rows.append(NEW)
        _check(named, name)
        return cls(tuple(named), tuple(rows))

    @property
    def grown(self) -> bool:
        """Whether there are symbols that the released model does not have."""
        return NEW in self.rows

    @property
    def released(self) -> int:
        """Rows of the released embeddings."""
        return max(self.rows) + 1

    def ordered(self, released: Tensor, new: float = 0.0) -> Tensor:
        """Values [V, ...] of all symbols from those of the released model's rows; ``new`` for new symbols."""
        rows = torch.tensor(self.rows)
        if torch.equal(rows, torch.arange(len(released))):
            return released
        values = released[rows.clamp(min=0)]
        values[rows == NEW] = new
        return values

    def write(self, path: Path) -> None:
        """Writes the dictionary's file."""
        with atomic_files(path) as (stream,):
            stream.writelines(f"{symbol} 1\n" for symbol in self.symbols[len(SPECIAL) :])


def _check(symbols: Sequence[str], name: Path) -> None:
    places: Dict[str, int] = {}
    for place, symbol in enumerate(symbols):
        if symbol in places:
            raise InputError(f"{name}: has the symbol {symbol!r} twice; the vocabulary does not match the model")
        if not symbol or "\n" in symbol or "\r" in symbol:
            raise InputError(f"{name}: the symbol {symbol!r} cannot stand in a dictionary")
        places[symbol] = place


def by_row(ids: Mapping[str, int], rows: int, name: Path) -> List[Optional[str]]:
    """The symbol of every row, None where there is none.

    Args:
        ids: of the symbols.
        rows: of the embeddings.
        name: of the file, for messages.

    Raises:
        InputError: numbers that come twice, or that the embeddings do not have.
    """
    found: List[Optional[str]] = [None] * rows
    for symbol, number in ids.items():
        if not isinstance(number, int) or not 0 <= number < rows:
            raise InputError(
                f"{name}: {symbol!r} is number {number}, but the model has {rows:,} embeddings: the vocabulary does "
                "not match the model"
            )
        if found[number] is not None:
            raise InputError(f"{name}: {symbol!r} and {found[number]!r} have one number, {number}")
        found[number] = symbol
    return found


def output_bias(vocabulary: Vocabulary, released: Optional[Tensor]) -> Optional[Tensor]:
    """The bias [V] of the logits; None: the model needs none.

    Args:
        vocabulary: of the target.
        released: [rows], or [1, rows] as the hub has it; None: the model has none.
    """
    if released is None:
        released = torch.zeros(vocabulary.released)
    if not vocabulary.grown and not released.any():
        return None
    return vocabulary.ordered(released.flatten(), NEVER)
