"""Decoder states by slot, written in place: of source sentences, and of the tokens of hypotheses."""

from typing import Any, Dict, Hashable, List, Tuple

import numpy as np
import torch
from torch import Tensor

GROWTH_STEPS = 8  # capacity added at a time
INITIAL_STEPS = 16  # initial capacity


class SlotTensor:
    """States of the sentence in each slot, [S, ..., n, w], padded with zeros to the longest n."""

    def __init__(self) -> None:
        self.tensor = torch.empty(0)
        self.widths = np.zeros(0, dtype=np.int64)

    def put(self, values: Tensor, slots: np.ndarray) -> None:
        """Sets slots [j], which may be new, to values [j, ..., n, w]."""
        count = max(len(self.widths), int(slots.max()) + 1)
        before = self.tensor if self.tensor.dim() == values.dim() else values[:0]
        wanted = (count, *map(max, before.shape[1:], values.shape[1:]))
        if wanted != tuple(before.shape):
            self.tensor = values.new_zeros(wanted)
            self.tensor[tuple(slice(size) for size in before.shape)] = before
            self.widths = np.concatenate([self.widths, np.zeros(count - len(self.widths), dtype=np.int64)])
        index = torch.from_numpy(slots).to(values.device)
        if tuple(values.shape[1:]) != wanted[1:]:
            self.tensor[index] = 0
        room: Any = (index, *(slice(size) for size in values.shape[1:]))
        self.tensor[room] = values
        self.widths[slots] = values.size(-2)

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        self.widths = self.widths[slots]
        self.tensor = self.tensor[..., : int(self.widths.max(initial=0)), :][torch.from_numpy(slots)]

    def seen(self) -> Tensor:
        """Values, cut to the longest n."""
        return self.tensor[..., : int(self.widths.max(initial=0)), :]


class StepStates:
    """States of all hypotheses of the sentence in each slot at all steps, [S, t, beam, w]."""

    def __init__(self) -> None:
        self.states = torch.empty(0, 0, 0, 0)

    def write(self, states: Tensor, steps: np.ndarray) -> None:
        """Stores states [S, beam, w] of ``steps`` [S]."""
        slots, before, last = len(states), self.states, int(steps.max())
        if last >= before.size(1) or slots > len(before):
            room = max(before.size(1), GROWTH_STEPS * (last // GROWTH_STEPS + 1))
            self.states = states.new_empty(slots, room, *states.shape[1:])
            self.states[: len(before), : before.size(1)] = before.view(*before.shape[:2], *states.shape[1:])
        index = torch.from_numpy(steps).to(states.device)
        self.states[torch.arange(slots, device=states.device), index] = states

    def of(self, slot: int, hypotheses: np.ndarray) -> Tensor:
        """States [m, w] of the steps of a slot for ``hypotheses`` [m]."""
        device = self.states.device
        return self.states[slot, torch.arange(len(hypotheses), device=device), torch.from_numpy(hypotheses).to(device)]

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        if len(self.states):
            self.states = self.states[torch.from_numpy(slots).to(self.states.device)]


class TokenCache:
    """Keys and values of the tokens of all hypotheses of a sentence, written once and not copied on reordering.

    A visibility mask contains the tokens of each hypothesis; reordering changes only the mask. When the capacity is
    exhausted, tokens that no hypothesis sees are dropped.

    Args:
        beam: number of hypotheses per sentence.
        device: device of the tensors.
        dtype: type of keys and values.
    """

    def __init__(self, beam: int, device: torch.device, dtype: torch.dtype = torch.float32):
        self.beam, self.device, self.dtype = beam, device, dtype
        self.lengths = np.zeros(0, dtype=np.int64)  # of each slot
        self.sees = torch.zeros(0, beam, INITIAL_STEPS * beam, dtype=torch.bool, device=device)
        self.parts: Dict[Hashable, List[Tensor]] = {}  # [S, H, capacity, w] each
        self.rows = torch.empty(0)

    @property
    def capacity(self) -> int:
        """Capacity in tokens per sentence."""
        return self.sees.size(-1)

    def clear(self, slots: np.ndarray) -> None:
        """Empties slots, which may be new."""
        missing = int(slots.max()) + 1 - len(self.lengths)
        if missing > 0:
            self.lengths = np.concatenate([self.lengths, np.zeros(missing, dtype=np.int64)])
            self.sees = torch.cat([self.sees, self.sees.new_zeros(missing, *self.sees.shape[1:])])
            for owner, parts in self.parts.items():
                self.parts[owner] = [torch.cat([part, part.new_zeros(missing, *part.shape[1:])]) for part in parts]
        self.lengths[slots] = 0
        self.sees[torch.from_numpy(slots).to(self.device)] = False

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        index = torch.from_numpy(slots).to(self.device)
        self.lengths, self.sees = self.lengths[slots], self.sees[index]
        self.parts = {owner: [part[index] for part in parts] for owner, parts in self.parts.items()}

    def begin_step(self) -> None:
        """Reserves a token for each hypothesis, visible to itself."""
        if int(self.lengths.max()) + self.beam > self.capacity:
            self._make_room()
        own = self.lengths[:, None] + np.arange(self.beam)  # [S, beam]
        self.places = torch.from_numpy(own).to(self.device)
        self.sees.scatter_(2, self.places[..., None], True)
        self.lengths = self.lengths + self.beam
        self.used = int(self.lengths.max())
        self.seen = self.sees[..., : self.used]
        self.rows = torch.empty(0)

    def write(self, owner: Hashable, values: Tuple[Tensor, ...]) -> List[Tensor]:
        """Writes values [S, H, beam, w] of the new tokens; those of all tokens are returned, [S, H, used, w] each."""
        if owner not in self.parts:
            shape = values[0].shape
            self.parts[owner] = [part.new_zeros(*shape[:2], self.capacity, part.size(-1)) for part in values]
        if not len(self.rows):
            heads = values[0].size(1)
            first = torch.arange(len(self.lengths) * heads, device=self.device).view(-1, heads, 1) * self.capacity
            self.rows = (first + self.places[:, None]).flatten()  # [S · H · beam]
        for part, new in zip(self.parts[owner], values):
            part.view(-1, part.size(-1)).index_copy_(0, self.rows, new.reshape(-1, new.size(-1)))
        return [part[:, :, : self.used] for part in self.parts[owner]]

    def reorder(self, parents: Tensor) -> None:
        """Makes hypotheses see the tokens of ``parents`` [S, beam]."""
        self.sees = self.sees.gather(1, parents[..., None].expand_as(self.sees))

    def _make_room(self) -> None:
        """Drops tokens that no hypothesis sees, and reserves capacity for further steps.

        Visible tokens are little more than one hypothesis long, so little is moved.
        """
        live = self.sees.any(1)  # [S, capacity]
        self.lengths = live.sum(1).cpu().numpy()
        longest = int(self.lengths.max())
        order = (~live).to(torch.int8).argsort(dim=1, stable=True)[:, :longest]  # [S, longest]
        sees = self.sees.gather(2, order[:, None].expand(-1, self.beam, -1))
        needed = longest + GROWTH_STEPS * self.beam
        capacity = self.capacity if needed <= self.capacity else max(needed, self.capacity * 3 // 2)
        self.sees = sees.new_zeros(*sees.shape[:2], capacity)
        self.sees[..., :longest] = sees
        for owner, parts in self.parts.items():
            self.parts[owner] = [self._moved(part, order, capacity) for part in parts]

    @staticmethod
    def _moved(part: Tensor, order: Tensor, capacity: int) -> Tensor:
        slots, heads, before, width = part.shape
        first = torch.arange(slots * heads, device=part.device).view(slots, heads, 1) * before
        rows = (first + order[:, None]).flatten()
        kept = part.view(-1, width).index_select(0, rows).view(slots, heads, -1, width)
        moved = part if capacity == before else part.new_zeros(slots, heads, capacity, width)
        moved[:, :, : order.size(1)] = kept
        return moved
