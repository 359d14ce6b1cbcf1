"""Sentence vectors from word vectors ([Z] sec. 3.1), baselines, and similar sentences as context.

``[Z]`` is Y. Zeng, Context Aware Machine Learning; sections, equations and algorithms as numbered there.
"""

from dataclasses import dataclass
from typing import Optional

from docnmt_fairseq.options import CheckedOptions, Choices, option

METHODS = Choices(("ca-sem", "ca-sem-sensitive", "sif", "average"))


@dataclass(frozen=True)
class Settings(CheckedOptions):
    """Settings of a model.

    Attributes:
        neighbours: similar sentences that are stored per sentence, for a model next to a data-bin.
    """

    method: str = option(
        "ca-sem",
        "ca-sem: context-aware re-embedding; ca-sem-sensitive: its context-sensitive part; sif: smooth inverse "
        "frequency without the first component; average of the word vectors",
        names=METHODS,
    )
    iterations: int = option(100, "maximum number of iterations of ca-sem", minimum=1)
    smoothing: float = option(1e-3, "a of sif, a / (a + p(w))", minimum=1e-9, maximum=1e9, metavar="A")
    lowercase: bool = option(False, "lowercase text before looking it up")
    phrases: bool = option(
        False, "words that contain _ or spaces are phrases: text is segmented into the fewest words and phrases"
    )
    remove_bpe: Optional[str] = option(
        None, "join the subwords of text and data-bins, e.g. sentencepiece or '@@ '", metavar="KIND"
    )
    neighbours: int = 0
