"""The selection is trained to predict where attention goes: a second loss, ours, not the paper's.

Hard selection passes a gradient to R of what was selected, and to nothing else: a sentence that ought to be found and
is not teaches nothing. While all sentences are kept, attention itself says which of them matter; the selection is
taught to predict that until something is left out.
"""

from dataclasses import dataclass
from typing import Optional

from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.divergence import Selectable, selection_divergence
from docnmt_fairseq.context.conditional.schedule import TopTSchedule
from docnmt_fairseq.context.conditional.selection import KeptSentences, Selection, SelectionKey
from docnmt_fairseq.layers.auxiliary_losses import AuxiliaryLoss, HandIn
from docnmt_fairseq.options import Choices, option

PHASES = Choices(("dense", "window", "always"))
SELECTED_MASS = "selected_mass"  # in the log


@dataclass(frozen=True)
class SelectionLossOptions:
    """How much the selection is taught, and when."""

    selection_loss: float = option(
        0.0, "weight of the loss that teaches the selection to predict where attention goes; 0: none, as in [T]; "
        "presets that select: 1", minimum=0,
    )  # fmt: skip
    selection_loss_phase: str = option(
        "dense", "when it acts: dense: in all updates before narrowing begins; window: in the last of these; always: "
        "after it, too", names=PHASES,
    )  # fmt: skip
    selection_loss_updates: int = option(150, "updates of the window", minimum=1)
    selection_loss_temperature: float = option(0.5, "τ of the prediction softmax(R/τ)", minimum=0.01)


class SelectionLoss:
    """The second loss of one layer.

    Args:
        options: see above.
        schedule: of how many sentences are kept.

    Class attributes:
        names: of what it hands in.
    """

    names = ("selection_loss", SELECTED_MASS)

    def __init__(self, options: SelectionLossOptions, schedule: TopTSchedule):
        self.weight = options.selection_loss
        self.phase = options.selection_loss_phase
        self.updates = options.selection_loss_updates
        self.temperature = options.selection_loss_temperature
        self.schedule = schedule

    def acts(self, training: bool) -> bool:
        """Whether it is wanted at this point of the schedule; validation always logs it."""
        schedule = self.schedule
        if schedule.top_t == 0 or (self.weight == 0 and schedule.anneal_threshold == 0):
            return False
        if not training or self.phase == "always":
            return True
        in_phase = self.phase == "dense" or schedule.update >= schedule.anneal_start - self.updates
        return schedule.before_annealing() and in_phase

    @property
    def key_of_tokens(self) -> SelectionKey:
        """Names the tokens whose loss it is: those that select, or will."""
        return KeptSentences(self.schedule.top_t)

    def hand_in(
        self,
        into: HandIn,
        q: Tensor,
        k: Tensor,
        q_s: Tensor,
        k_s: Tensor,
        layout: DocumentLayout,
        selection: Optional[Selection],
    ) -> None:
        """Hands in the loss, and how much of what t sentences can have at most is on those that R selects.

        Args:
            into: who takes them.
            q, k: [N, H, d_k] queries and keys of tokens.
            q_s, k_s: [N, H, d_k] and [R, H, d_k] queries and keys of relevance; gradients reach these.
            layout: the batch.
            selection: what is selected; None: every sentence is kept.
        """
        plan, top_t = layout.plan(Selectable(self.key_of_tokens)), self.schedule.top_t
        loss, mass, largest = selection_divergence(q, k, q_s, k_s, plan, top_t, self.temperature, selection)
        into(AuxiliaryLoss(self.names[0], loss, plan.tokens, self.weight))
        into(AuxiliaryLoss(SELECTED_MASS, mass, largest))
