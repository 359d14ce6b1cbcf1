"""How often training hides the context of a document, or its source side's alone: :class:`ContextDropout`."""

from dataclasses import dataclass
from enum import Enum
from typing import Optional, Sequence, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError


class Hidden(Enum):
    """What of a document its sentences do not see; false where they see everything."""

    NOTHING = "nothing"
    SOURCE = "source"  # the other source sentences; what was translated before is seen
    ALL = "all"

    def __bool__(self) -> bool:
        return self is not Hidden.NOTHING


@dataclass(frozen=True)
class ContextDropout:
    """Draws what is hidden of every piece of a document, anew every epoch.

    Attributes:
        everything: probability that sentences see nothing but themselves.
        source: probability that they see the translations before theirs alone.
        seed: of the draws.

    Raises:
        InputError: these are no probabilities of two things of which one at most happens.
    """

    everything: float = 0.0
    source: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        for name, share in (("context-dropout", self.everything), ("source-context-dropout", self.source)):
            if not 0 <= share <= 1:
                raise InputError(f"--{name} {share}: a probability is between 0 and 1")
        if self.everything + self.source > 1:
            raise InputError(
                f"--context-dropout {self.everything} and --source-context-dropout {self.source}: of a document either "
                "all context is hidden or the source's, so that together they must not be above 1"
            )

    def draw(self, epoch: int, number: int) -> Hidden:
        """What is hidden of the piece of that number in an epoch."""
        if not self.everything + self.source:
            return Hidden.NOTHING
        drawn = np.random.default_rng((self.seed, epoch, number)).random()
        if drawn < self.everything:
            return Hidden.ALL
        return Hidden.SOURCE if drawn < self.everything + self.source else Hidden.NOTHING


def target_documents(pieces: Sequence[Tuple[Hidden, int]]) -> Optional[np.ndarray]:
    """The document of every sentence's target, [S], where a document is what sees its earlier targets.

    Args:
        pieces: of each what is hidden, and how many of its sentences are translated.

    Returns:
        numbers that rise; None where targets and sources are in the same documents.
    """
    if all(hidden is not Hidden.SOURCE for hidden, _ in pieces):
        return None
    lengths = np.concatenate([np.ones(rows, int) if hidden is Hidden.ALL else [rows] for hidden, rows in pieces])
    return np.repeat(np.arange(len(lengths)), lengths.astype(int))
