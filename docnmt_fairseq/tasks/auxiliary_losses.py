"""Losses and schedules of model parts (auxiliary losses, top-t schedules), as a task trains and logs them."""

from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics
from fairseq.logging.meters import AverageMeter
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.selection import TopTSchedule
from docnmt_fairseq.context.conditional.selection_loss import SELECTED_MASS
from docnmt_fairseq.layers.auxiliary_losses import collect

AUXILIARY, ITEMS = "auxiliary_", "_items"
StepResult = Tuple[Tensor, int, Dict[str, Any]]  # loss, sample size, logging output


def with_auxiliary_losses(criterion: FairseqCriterion) -> Callable[[BaseFairseqModel, Dict[str, Any]], StepResult]:
    """Criterion that adds the auxiliary losses of the model's parts in training, and logs them."""

    def step(model: BaseFairseqModel, sample: Dict[str, Any]) -> StepResult:
        with collect() as collected:
            loss, size, log = criterion(model, sample)
        sums, nothing = collected.sums(), loss.detach().new_zeros(())
        for name in sorted({*sums, *names_of(model)}):
            log[AUXILIARY + name], log[AUXILIARY + name + ITEMS] = sums.get(name, (nothing, nothing))
        added = collected.weighted() if model.training else None
        return loss if added is None else loss + added, size, log

    return step


def names_of(model: nn.Module) -> Set[str]:
    """Names of the losses that the parts of a model may hand in.

    A batch may leave out layers (``--encoder-layerdrop``), but all processes must log the same names.
    """
    return {name for part in model.modules() for name in getattr(part, "hands_in", tuple)()}


def auxiliary_means(logging_outputs: List[Dict[str, Any]]) -> Iterator[Tuple[str, float, float]]:
    """Name, mean and number of items of every auxiliary loss."""
    for key in sorted({key for log in logging_outputs for key in log}):
        if key.startswith(AUXILIARY) and key.endswith(ITEMS):
            key = key[: -len(ITEMS)]
            total, count = (float(sum(log.get(name, 0) for log in logging_outputs)) for name in (key, key + ITEMS))
            if count:
                yield key[len(AUXILIARY) :], total / count, count


def drop_empty_meters() -> None:
    """Removes figures without a value since the last line of the log, which would show None."""
    for meters in metrics.get_active_aggregators():
        shown = [(key, meter) for key, meter in meters.items() if not key.startswith("_")]
        empty = {key for key, meter in shown if isinstance(meter, AverageMeter) and meter.val is None}
        meters.priorities = [entry for entry in meters.priorities if entry[-1] not in empty]
        for key in empty:
            del meters[key]


class SelectionSchedules:
    """Top-t schedules of a model.

    Args:
        model: model with any number of schedules.
    """

    def __init__(self, model: nn.Module):
        self.schedules = [part for part in model.modules() if isinstance(part, TopTSchedule)]
        self.known = [schedule.current_top_t() for schedule in self.schedules]

    def changed(self) -> bool:
        """Returns whether the number of selected sentences differs from that at construction."""
        return [schedule.current_top_t() for schedule in self.schedules] != self.known

    def log(self, layout: DocumentLayout) -> None:
        """Logs the number of selected sentences per token, averaged over the documents of several sentences.

        A sentence whose context is hidden is a document by itself, without a choice.
        """
        several = layout.sentences.lengths[layout.sentences.lengths > 1]
        if self.schedules and len(several):
            kept = self.schedules[0].current_top_t().of(several)
            metrics.log_scalar("kept_sentences", float(kept.mean()), weight=len(kept), priority=500, round=2)

    def update(self, logging_outputs: List[Dict[str, Any]]) -> None:
        """Passes the selected attention mass of an update, over all processes, to the schedules."""
        for name, mean, _ in auxiliary_means(logging_outputs):
            if name == SELECTED_MASS:
                for schedule in self.schedules:
                    schedule.update_selected_mass(mean)
