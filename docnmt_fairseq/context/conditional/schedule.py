"""How many sentences a token keeps, as training goes on.

Hard selection trained from scratch does not learn where to look: the sentences that would help are never seen. Training
with all sentences first and narrowing to t afterwards does.
"""

from typing import Any, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.context.conditional.selection import KeptSentences


class KeepSchedule(nn.Module):
    """t(update): ``top_t_start`` up to update ``narrow_from``, then linearly down to ``top_t`` in ``narrow_updates``.

    The share of the way gone is a buffer: checkpoints hold it, resuming continues, generation uses what was reached.

    Args:
        top_t: t at the end, 0: all sentences, always.
        top_t_start: t at the beginning, 0: all sentences of the document.
        narrow_from: update at which narrowing begins.
        narrow_updates: updates until ``top_t`` is reached; 0 jumps.
    """

    narrowed: Tensor

    def __init__(self, top_t: int, top_t_start: int = 0, narrow_from: int = 0, narrow_updates: int = 0):
        super().__init__()
        self.top_t = top_t
        self.top_t_start = top_t_start
        self.narrow_from = narrow_from
        self.narrow_updates = narrow_updates
        self.register_buffer("narrowed", torch.tensor(self._share(0)))
        self._narrowed: Optional[float] = None  # the buffer's value on the CPU, None: to be read

    def _share(self, update: int) -> float:
        if update < self.narrow_from:
            return 0.0
        return 1.0 if self.narrow_updates == 0 else min(1.0, (update - self.narrow_from) / self.narrow_updates)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self._narrowed = self._share(num_updates)
        self.narrowed.fill_(self._narrowed)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._narrowed = None

    def kept(self) -> KeptSentences:
        """How many sentences are kept at this point."""
        if self._narrowed is None:
            self._narrowed = float(self.narrowed)
        return KeptSentences(self.top_t, self.top_t_start, self._narrowed)

    def extra_repr(self) -> str:
        """The schedule in words."""
        begin = f"from {self.top_t_start or 'all'} at update {self.narrow_from}"
        return f"{self.top_t or 'all'} kept, {begin} within {self.narrow_updates}"
