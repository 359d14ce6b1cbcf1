"""Context dropout: in training, hides the context of a document, or only its source side, with some probability."""

from dataclasses import dataclass
from enum import Enum
from typing import Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError


class Hidden(Enum):
    """Context that is hidden from the sentences of a document; false if nothing is hidden."""

    NOTHING = "nothing"
    SOURCE = "source"  # other source sentences; previous translations are visible
    ALL = "all"

    def __bool__(self) -> bool:
        return self is not Hidden.NOTHING


@dataclass(frozen=True)
class ContextDropout:
    """Draws what is hidden of every chunk of a document in every epoch.

    Attributes:
        everything: probability that sentences see only themselves.
        source: probability that they see only the previous translations.
        seed: seed of the draws.

    Raises:
        InputError: not probabilities of two exclusive events.
    """

    everything: float = 0.0
    source: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if min(self.everything, self.source) < 0 or not self.everything + self.source <= 1:
            raise InputError(
                f"--context-dropout {self.everything} and --source-context-dropout {self.source}: probabilities of "
                "exclusive events; neither may be negative, and their sum at most 1"
            )

    def draw(self, epoch: int, number: int) -> Hidden:
        """Returns what is hidden of a chunk in an epoch."""
        if not self.everything + self.source:
            return Hidden.NOTHING
        drawn = np.random.default_rng((self.seed, epoch, number)).random()
        if drawn < self.everything:
            return Hidden.ALL
        return Hidden.SOURCE if drawn < self.everything + self.source else Hidden.NOTHING


def target_documents(chunks: Sequence[Tuple[Hidden, int]]) -> Optional[np.ndarray]:
    """Returns the document of every sentence's target, [S]; targets of one document see the previous ones.

    Args:
        chunks: what is hidden of each chunk, and its number of translated sentences.

    Returns:
        ascending numbers; None if targets and sources are in the same documents.
    """
    if all(hidden is not Hidden.SOURCE for hidden, _ in chunks):
        return None
    lengths = np.concatenate([np.ones(rows, int) if hidden is Hidden.ALL else [rows] for hidden, rows in chunks])
    return np.repeat(np.arange(len(lengths)), lengths.astype(int))
