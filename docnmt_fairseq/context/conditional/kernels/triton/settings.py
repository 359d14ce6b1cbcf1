"""Sizes of the programs' blocks, by width of heads; what they need of a GPU is in ``benchmarks/results/triton.md``."""

from dataclasses import dataclass, field
from typing import Dict, Mapping, Tuple

import torch

MOST_PLACES = 16  # for sentences: choosing holds so many keys a token in registers
WIDEST_HEAD = 128


@dataclass(frozen=True)
class Settings:
    """How a program is compiled.

    Attributes:
        blocks: sizes of its blocks by name.
        warps: of 32 threads each.
        stages: of loads under way at the same time.
        of_width: other settings for heads of a width and for a type of states.
    """

    blocks: Mapping[str, int]
    warps: int = 4
    stages: int = 2
    others: Mapping[Tuple[int, torch.dtype], "Settings"] = field(default_factory=dict)

    def options(self, width: int, dtype: torch.dtype) -> Dict[str, int]:
        """What is given to the compiler."""
        chosen = self.others.get((width, dtype), self)
        return {**chosen.blocks, "num_warps": chosen.warps, "num_stages": chosen.stages}


CHOOSE = Settings({"SENTENCES": 64})
WALK = Settings({"CANDIDATES": 8192})  # numbers of gathered keys, so many tokens a program
SCORE = Settings({"ROWS": 32})
SCORE_KEYS = Settings({"PAIRS": 64})
ATTEND = Settings({"QUERIES": 64, "KEYS": 32})
BACKWARD = Settings({"QUERIES": 64, "KEYS": 32})
ROWWISE = Settings({"ROWS": 32})
ADD_PARTS = Settings({"KEYS": 32})
