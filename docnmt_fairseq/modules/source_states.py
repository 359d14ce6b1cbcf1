"""The states of one source, and which of them each decoded sentence sees."""

from dataclasses import dataclass, replace
from typing import Callable, Optional, Tuple

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class SourceStates:
    """What one encoder gives: its states, without padding, and the sentences that they are for.

    A sentence may see no state at all (the first one of a document has no previous sentences), and several sentences
    may see the same states (those of a sentence that is the context of both).

    Attributes:
        states: [M, d_k] packed states.
        lengths: [S] how many states each decoded sentence sees, 0: none.
        items: [their sum] the numbers of these states, those of sentence 0 first; None: all states in order.
    """

    states: Tensor
    lengths: np.ndarray
    items: Optional[np.ndarray] = None

    def map(self, function: Callable[[Tensor], Tensor]) -> "SourceStates":
        """Returns the same rows over ``function(states)``, computed once a state."""
        return replace(self, states=function(self.states))

    def block(self, rows: np.ndarray) -> Tuple[Tensor, Tensor]:
        """Returns the states [b, n, d_k] of some sentences padded together, n at least 1, and the padding [b, n].

        Padding is True; what stands there is some state or zero, and must be masked by whoever attends.
        """
        lengths = self.lengths[rows]
        column = np.arange(max(1, int(lengths.max(initial=0))))
        padding = column >= lengths[:, None]
        offsets = (np.cumsum(self.lengths) - self.lengths)[rows]
        index = np.where(padding, 0, offsets[:, None] + column)
        if self.items is not None and len(self.items):
            index = np.where(padding, 0, self.items[index])
        device = self.states.device
        states = self.states if len(self.states) else self.states.new_zeros(1, *self.states.shape[1:])
        return states[torch.as_tensor(index, device=device)], torch.as_tensor(padding, device=device)

    def padded(self) -> Tuple[Tensor, Tensor]:
        """Returns the states [S, n, d_k] and the padding [S, n] of all sentences; see :meth:`block`."""
        return self.block(np.arange(len(self.lengths)))
