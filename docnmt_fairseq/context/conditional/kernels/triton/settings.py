"""Sizes of the programs' blocks, by width of heads and type: chosen so that registers hold what they compute with.

The tests compile each program ahead of time and check its registers and shared memory.
"""

from dataclasses import dataclass, field
from typing import Dict, Mapping, Tuple

import torch

MOST_PLACES = 16  # for sentences: choosing holds so many scores and sentence numbers a token in registers
WIDEST_HEAD = 128


@dataclass(frozen=True)
class Settings:
    """How a program is compiled.

    Attributes:
        blocks: sizes of its blocks by name.
        warps: of 32 threads each.
        others: settings for wider heads: the narrowest that they are for, and the bytes of a number.
    """

    blocks: Mapping[str, int]
    warps: int = 4
    others: Mapping[Tuple[int, int], "Settings"] = field(default_factory=dict)

    def options(self, width: int, dtype: torch.dtype) -> Dict[str, int]:
        """What is given to the compiler for heads of a width and states of a type."""
        fitting = [least for least, size in self.others if size == dtype.itemsize and least <= width]
        chosen = self.others[max(fitting), dtype.itemsize] if fitting else self
        return {**chosen.blocks, "num_warps": chosen.warps, "num_stages": 2}


CHOOSE = Settings({"SENTENCES": 64}, others={(16, 4): Settings({"SENTENCES": 32})})
WALK = Settings({"NUMBERS": 8192})  # of gathered keys; as many tokens a program
SCORE = Settings({"ROWS": 32})
SCORE_KEYS = Settings({"PAIRS": 64})
ATTEND = Settings(
    {"QUERIES": 64, "KEYS": 32},
    others={
        (128, 2): Settings({"QUERIES": 64, "KEYS": 32}, warps=8),
        (128, 4): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
    },
)
BACKWARD = Settings(
    {"QUERIES": 64, "KEYS": 32},
    others={
        (128, 2): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
        (64, 4): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
        (128, 4): Settings({"QUERIES": 16, "KEYS": 32}, warps=8),
    },
)
ROWWISE = Settings({"ROWS": 32})
ADD_PARTS = Settings({"KEYS": 32})
