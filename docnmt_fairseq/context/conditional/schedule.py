"""How many sentences a token keeps, as training goes on.

Hard selection trained from scratch does not learn where to look: the sentences that would help are never seen. Training
with all sentences first and narrowing to t afterwards does.
"""

from typing import Any, Callable, Dict, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.context.conditional.selection import KeptSentences

MEMORY = 0.9  # of the running mean of the selected mass
STATE = ("narrowed", "began", "selected_mass")  # the schedule's buffers


class KeepSchedule(nn.Module):
    """t(update): ``top_t_start`` until narrowing begins, then linearly down to ``top_t`` in ``narrow_updates``.

    Narrowing begins at update ``narrow_from`` or, with ``narrow_when``, at the first one from there on at which the
    sentences that would be selected have that share of the attention that so many can have at most. The state is in
    buffers: checkpoints hold it, resuming continues, generation uses what was reached.

    Args:
        top_t: t at the end, 0: all sentences, always.
        top_t_start: t at the beginning, 0: all sentences of the document.
        narrow_from: update at which narrowing begins.
        narrow_updates: updates until ``top_t`` is reached; 0 jumps.
        narrow_when: the share of the mass that is needed for it; 0: none.
    """

    narrowed: Tensor
    began: Tensor  # the update at which narrowing began; −1: not yet
    selected_mass: Tensor  # a running mean

    def __init__(
        self,
        top_t: int,
        top_t_start: int = 0,
        narrow_from: int = 0,
        narrow_updates: int = 0,
        narrow_when: float = 0.0,
    ):
        super().__init__()
        self.top_t = top_t
        self.top_t_start = top_t_start
        self.narrow_from = narrow_from
        self.narrow_updates = narrow_updates
        self.narrow_when = narrow_when
        self.update = 0
        self.register_buffer("began", torch.tensor(-1))
        self.register_buffer("selected_mass", torch.tensor(0.0, dtype=torch.float64))  # as it is computed
        self.register_buffer("narrowed", torch.tensor(0.0, dtype=torch.float64))
        self._narrowed: Optional[float] = None  # the buffers' values on the CPU, None: to be read
        self._began: Optional[int] = None
        self._mass: Optional[float] = None  # of full precision, also where the model is of a half type
        self.set_num_updates(0)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self.update = num_updates
        if num_updates == 0:  # what another training saw, which this one begins from, says nothing here
            self._mass = 0.0
            self.selected_mass.fill_(0.0)
        begin = self.narrow_from if self.narrow_when == 0 else self._begin()
        gone = num_updates - begin if begin >= 0 else -1
        self._narrowed = 0.0 if gone < 0 else 1.0 if self.narrow_updates == 0 else min(1.0, gone / self.narrow_updates)
        self.narrowed.fill_(self._narrowed)

    def _begin(self) -> int:
        """The update at which narrowing begins, as far as the selected mass says so already; −1: not yet."""
        if self._began is None:
            self._began = int(self.began)
        if self._began > self.update:  # of another training, which this one begins from
            self._set_began(-1)
        return self._began

    def _set_began(self, update: int) -> None:
        self._began = update
        self.began.fill_(update)

    def update_selected_mass(self, mass: float) -> None:
        """Told after an update which share of the mass is on the sentences to be selected, over all processes."""
        before = float(self.selected_mass) if self._mass is None else self._mass
        self._mass = MEMORY * before + (1 - MEMORY) * mass if before else mass
        self.selected_mass.fill_(self._mass)
        ripe = self.narrow_when and self._mass >= self.narrow_when
        if ripe and self.update + 1 >= self.narrow_from and self._begin() < 0:
            self._set_began(self.update + 1)

    def before_narrowing(self) -> bool:
        """Whether narrowing has not begun: ``top_t_start`` sentences are kept, or all."""
        return self.kept().narrowed == 0.0

    def _load_from_state_dict(self, state_dict: Dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        for name in ("began", "selected_mass"):  # checkpoints of earlier versions have them not
            state_dict.setdefault(prefix + name, getattr(self, name))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._narrowed = self._began = self._mass = None

    def kept(self) -> KeptSentences:
        """How many sentences are kept at this point."""
        if self._narrowed is None:
            self._narrowed = float(self.narrowed)
        return KeptSentences(self.top_t, self.top_t_start, self._narrowed)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> "KeepSchedule":
        """Moves the buffers along with the model, and keeps their types: of a rounded share t comes out one off."""
        exact = {name: getattr(self, name) for name in ("narrowed", "selected_mass")}
        super()._apply(fn, *args, **kwargs)
        for name, value in exact.items():
            setattr(self, name, value.to(getattr(self, name).device))
        return self

    def inference_remark(self) -> Optional[str]:
        """What users of a checkpoint ought to know, where it is of before the selection has narrowed."""
        narrowed = self.kept().narrowed
        if self.top_t == 0 or narrowed == 1:
            return None
        at = "had not begun" if narrowed == 0 else f"was {narrowed:.0%} done"
        return (
            f"narrowing to --context-top-t {self.top_t} {at} when this checkpoint was written: tokens keep more "
            "sentences, as they did then; a later checkpoint, such as checkpoint_last.pt, may be of after it"
        )

    def extra_repr(self) -> str:
        """The schedule in words."""
        when = f" when {self.narrow_when} of the mass is selected" if self.narrow_when else ""
        begin = f"from {self.top_t_start or 'all'} at update {self.narrow_from}{when}"
        return f"{self.top_t or 'all'} kept, {begin} within {self.narrow_updates}"
