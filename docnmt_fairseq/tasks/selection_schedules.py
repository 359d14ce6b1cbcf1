"""The schedules of a model's selections, as a task follows them through a training."""

from typing import Any, Dict, List

from fairseq.logging import metrics
from torch import nn

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.schedule import TopTSchedule
from docnmt_fairseq.context.conditional.selection_loss import SELECTED_MASS
from docnmt_fairseq.tasks.auxiliary_losses import auxiliary_means


class SelectionSchedules:
    """All schedules of a model; they go on side by side.

    Args:
        model: perhaps without any.
    """

    def __init__(self, model: nn.Module):
        self.schedules = [part for part in model.modules() if isinstance(part, TopTSchedule)]
        self.known = [schedule.current_top_t() for schedule in self.schedules]

    def moved(self) -> bool:
        """Whether another number of sentences is kept than when this was made."""
        return [schedule.current_top_t() for schedule in self.schedules] != self.known

    def log(self, layout: DocumentLayout) -> None:
        """Logs how many sentences a token keeps, on average over a batch's documents."""
        if self.schedules:
            kept = self.schedules[0].current_top_t().of(layout.sentences.lengths)
            metrics.log_scalar("kept_sentences", float(kept.mean()), weight=len(kept), priority=500, round=2)

    def saw(self, logging_outputs: List[Dict[str, Any]]) -> None:
        """Tells the schedules what the selections found in an update, of all processes."""
        for name, mean, _ in auxiliary_means(logging_outputs):
            if name == SELECTED_MASS:
                for schedule in self.schedules:
                    schedule.update_selected_mass(mean)
