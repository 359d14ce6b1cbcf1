"""How many sentences a token keeps, as training goes on.

Hard selection trained from scratch does not learn where to look: the sentences that would help are never seen. Training
with all sentences first and narrowing to t afterwards does.
"""

from typing import Any, Callable, Dict, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.context.conditional.selection import KeptSentences

MEMORY = 0.9  # of the running mean of the selected mass
STATE = ("progress", "start_update", "selected_mass")  # the schedule's buffers


class TopTSchedule(nn.Module):
    """t(update): ``top_t_start`` until narrowing begins, then linearly down to ``top_t`` in ``anneal_updates``.

    Annealing begins at update ``anneal_start`` or, with ``anneal_threshold``, at the first later update at which
    the sentences that would be selected reach that share of the largest possible attention mass. The state is in
    buffers: checkpoints hold it, resuming continues, generation uses what was reached.

    Args:
        top_t: t at the end, 0: all sentences, always.
        top_t_start: t at the beginning, 0: all sentences of the document.
        anneal_start: update at which narrowing begins.
        anneal_updates: updates until ``top_t`` is reached; 0 jumps.
        anneal_threshold: the share of the mass that is needed for it; 0: none.
    """

    progress: Tensor
    start_update: Tensor  # update at which annealing begins; −1: not yet
    selected_mass: Tensor  # a running mean

    def __init__(
        self,
        top_t: int,
        top_t_start: int = 0,
        anneal_start: int = 0,
        anneal_updates: int = 0,
        anneal_threshold: float = 0.0,
    ):
        super().__init__()
        self.top_t = top_t
        self.top_t_start = top_t_start
        self.anneal_start = anneal_start
        self.anneal_updates = anneal_updates
        self.anneal_threshold = anneal_threshold
        self.update = 0
        self.register_buffer("start_update", torch.tensor(-1))
        self.register_buffer("selected_mass", torch.tensor(0.0, dtype=torch.float64))  # as it is computed
        self.register_buffer("progress", torch.tensor(0.0, dtype=torch.float64))
        self._progress: Optional[float] = None  # the buffers' values on the CPU, None: to be read
        self._start_update: Optional[int] = None
        self._mass: Optional[float] = None  # of full precision, also where the model is of a half type
        self.set_num_updates(0)

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before every update."""
        self.update = num_updates
        if num_updates == 0:  # what another training saw, which this one begins from, says nothing here
            self._mass = 0.0
            self.selected_mass.fill_(0.0)
        begin = self.anneal_start if self.anneal_threshold == 0 else self._begin()
        gone = num_updates - begin if begin >= 0 else -1
        self._progress = 0.0 if gone < 0 else 1.0 if self.anneal_updates == 0 else min(1.0, gone / self.anneal_updates)
        self.progress.fill_(self._progress)

    def _begin(self) -> int:
        """The update at which narrowing begins, as far as the selected mass says so already; −1: not yet."""
        if self._start_update is None:
            self._start_update = int(self.start_update)
        if self._start_update > self.update:  # of another training, which this one begins from
            self._set_start_update(-1)
        return self._start_update

    def _set_start_update(self, update: int) -> None:
        self._start_update = update
        self.start_update.fill_(update)

    def update_selected_mass(self, mass: float) -> None:
        """Told after an update which share of the mass is on the sentences to be selected, over all processes."""
        before = float(self.selected_mass) if self._mass is None else self._mass
        self._mass = MEMORY * before + (1 - MEMORY) * mass if before else mass
        self.selected_mass.fill_(self._mass)
        ready = self.anneal_threshold and self._mass >= self.anneal_threshold
        if ready and self.update + 1 >= self.anneal_start and self._begin() < 0:
            self._set_start_update(self.update + 1)

    def before_annealing(self) -> bool:
        """Whether narrowing has not begun: ``top_t_start`` sentences are kept, or all."""
        return self.current_top_t().progress == 0.0

    def _load_from_state_dict(self, state_dict: Dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        for name in ("start_update", "selected_mass"):  # checkpoints of earlier versions have them not
            state_dict.setdefault(prefix + name, getattr(self, name))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        self._progress = self._start_update = self._mass = None

    def current_top_t(self) -> KeptSentences:
        """How many sentences are kept at this point."""
        if self._progress is None:
            self._progress = float(self.progress)
        return KeptSentences(self.top_t, self.top_t_start, self._progress)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> "TopTSchedule":
        """Moves the buffers along with the model, and keeps their types: of a rounded share t comes out one off."""
        exact = {name: getattr(self, name) for name in ("progress", "selected_mass")}
        super()._apply(fn, *args, **kwargs)
        for name, value in exact.items():
            setattr(self, name, value.to(getattr(self, name).device))
        return self

    def inference_remark(self) -> Optional[str]:
        """What users of a checkpoint ought to know, where it is of before the selection has narrowed."""
        progress = self.current_top_t().progress
        if self.top_t == 0 or progress == 1:
            return None
        at = "had not begun" if progress == 0 else f"was {progress:.0%} done"
        return (
            f"narrowing to --context-top-t {self.top_t} {at} when this checkpoint was written: tokens keep more "
            "sentences, as they did then; a later checkpoint, such as checkpoint_last.pt, may be of after it"
        )

    def extra_repr(self) -> str:
        """The schedule in words."""
        when = f" when {self.anneal_threshold} of the mass is selected" if self.anneal_threshold else ""
        begin = f"from {self.top_t_start or 'all'} at update {self.anneal_start}{when}"
        return f"{self.top_t or 'all'} kept, {begin} within {self.anneal_updates}"
