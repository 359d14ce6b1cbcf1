"""How many sentences a word keeps, as training goes on.

Hard selection trained from scratch does not learn where to look: the sentences that would help are never seen. Training
with all sentences first and narrowing to t afterwards does.
"""

import math
from typing import Optional

import numpy as np
import torch
from torch import nn


class KeepSchedule(nn.Module):
    """t(update): ``start`` up to update ``begin``, then linearly down to ``final`` within ``duration`` updates.

    The share of the way gone is a buffer: checkpoints hold it, resuming continues, generation uses what was reached.

    Args:
        final: t at the end, None: all sentences, always.
        start: t at the beginning, None: all sentences of the document.
        begin: update at which narrowing begins.
        duration: updates until ``final`` is reached; 0 jumps.
    """

    def __init__(self, final: Optional[int], start: Optional[int] = None, begin: int = 0, duration: int = 0):
        super().__init__()
        self.final = final
        self.start = start
        self.begin = begin
        self.duration = duration
        self.register_buffer("narrowed", torch.tensor(self._share(0)))
        self._narrowed: Optional[float] = None  # the buffer's value on the CPU, None: to be read

    def _share(self, update: int) -> float:
        if update < self.begin:
            return 0.0
        return 1.0 if self.duration == 0 else min(1.0, (update - self.begin) / self.duration)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self._narrowed = self._share(num_updates)
        self.narrowed.fill_(self._narrowed)

    def _load_from_state_dict(self, *args, **kwargs) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._narrowed = None

    def kept(self, sentences: np.ndarray) -> np.ndarray:
        """Returns t for documents of the given numbers of sentences, [D] from [D]: between 1 and their number."""
        if self.final is None:
            return sentences
        if self._narrowed is None:
            self._narrowed = float(self.narrowed)
        start = sentences if self.start is None else np.minimum(self.start, sentences)
        final = np.minimum(self.final, start)
        return np.ceil(start - (start - final) * self._narrowed - 1e-6).astype(np.int64).clip(min=1)

    def extra_repr(self) -> str:
        """Returns the schedule in words."""
        begin = f"from {'all' if self.start is None else self.start} at update {self.begin}"
        return f"{'all' if self.final is None else self.final} kept, {begin} within {math.ceil(self.duration)}"
