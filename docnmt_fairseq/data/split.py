"""A split of a corpus: lines of both sides, where its documents begin, and what else its sentences have."""

from dataclasses import dataclass
from typing import Optional, Sequence

import numpy as np

from docnmt_fairseq.data.index import DocumentIndex, Lines


@dataclass(frozen=True)
class Split:
    """Documents as a data-bin, or text that was given, holds them.

    Attributes:
        source, target: indexed datasets of sentences (and marks); no target in translation.
        index: where documents and paragraphs begin.
        name: for messages.
        extra: datasets of the same items, texts or features of the sentences; None for an extra source that the
            document holds.
        similar: [items, K] how many sentences back the most similar ones stand, see ``data/similar.py``.
    """

    source: Lines
    target: Optional[Lines]
    index: DocumentIndex
    name: str = "input"
    extra: Sequence[Optional[Lines]] = ()
    similar: Optional[np.ndarray] = None
