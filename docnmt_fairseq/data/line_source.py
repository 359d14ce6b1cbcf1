"""What a batch holds of one further source: tokens of a text, or rows of a matrix of features."""

from dataclasses import dataclass, replace
from typing import List

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class LineSource:
    """The items of every decoded sentence, one sentence after another.

    Attributes:
        values: [M] token ids, or [M, d_f] features.
        lengths: [S] how many of them are each sentence's; features may have none.
    """

    values: Tensor
    lengths: np.ndarray

    @classmethod
    def join(cls, of_sentences: List[Tensor]) -> "LineSource":
        """Returns the source of a batch from the items of each sentence."""
        return cls(torch.cat(of_sentences), np.array([len(items) for items in of_sentences]))

    def to(self, device: torch.device) -> "LineSource":
        """Returns the same with its tensor on ``device``."""
        return replace(self, values=self.values.to(device))
