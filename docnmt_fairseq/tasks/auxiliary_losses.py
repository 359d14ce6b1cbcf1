"""Losses that parts of a model hand in, added to those of any criterion, and their means in the log."""

from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

from fairseq.criterions import FairseqCriterion
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from docnmt_fairseq.layers.auxiliary_losses import collect

AUXILIARY, ITEMS = "auxiliary_", "_items"
StepResult = Tuple[Tensor, int, Dict[str, Any]]  # loss, sample size, log


def with_auxiliary_losses(criterion: FairseqCriterion) -> Callable[[BaseFairseqModel, Dict[str, Any]], StepResult]:
    """A criterion that adds, while the model trains, what its parts hand in, and logs it."""

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
    """What a model's parts may hand in now; they say so by ``hands_in``.

    Layers may be left out of a batch (``--encoder-layerdrop``), but processes that add up what they log need the same
    names of all batches.
    """
    return {name for part in model.modules() for name in getattr(part, "hands_in", tuple)()}


def auxiliary_means(logging_outputs: List[Dict[str, Any]]) -> Iterator[Tuple[str, float, float]]:
    """Name, mean and number of items of what parts of a model handed in."""
    for key in sorted({key for log in logging_outputs for key in log}):
        if key.startswith(AUXILIARY) and key.endswith(ITEMS):
            key = key[: -len(ITEMS)]
            total, count = (float(sum(log.get(name, 0) for log in logging_outputs)) for name in (key, key + ITEMS))
            if count:
                yield key[len(AUXILIARY) :], total / count, count
