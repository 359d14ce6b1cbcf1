"""``--best-checkpoint-metric``: what fairseq looks up in the figures of each validation to know the best checkpoint."""

import logging
from typing import Any, Iterator

from docnmt_fairseq.errors import InputError

FLAG = "--best-checkpoint-metric"
MAXIMIZE = "--maximize-best-checkpoint-metric"
BLEU, LOSS = "bleu", "loss"  # what --eval-bleu adds, and what every criterion has
HIGHER_IS_BETTER = ("bleu", "accuracy")  # ends of names

logger = logging.getLogger(__name__)


def problems_of(cfg: Any) -> Iterator[str]:
    """Why BLEU, if that is the measure, is not there to be looked up.

    Args:
        cfg: fairseq's configuration.
    """
    metric = cfg.checkpoint.best_checkpoint_metric
    if metric == BLEU and not cfg.dataset.disable_validation and not getattr(cfg.task, "eval_bleu", True):
        yield f"{FLAG} {metric}: needs --eval-bleu"


def check_metric(trainer: Any) -> None:
    """Looks for the measure in the figures of one batch of the validation, as names of figures depend on the model.

    fairseq would look for it when an epoch is trained, before a checkpoint of that is written.

    Raises:
        InputError: it is not among them; names them.
    """
    from fairseq.logging import metrics

    cfg = trainer.cfg
    metric, split = cfg.checkpoint.best_checkpoint_metric, cfg.dataset.valid_subset.split(",")[0]
    if cfg.dataset.disable_validation or split not in trainer.task.datasets:
        return
    if metric.endswith(HIGHER_IS_BETTER) and not cfg.checkpoint.maximize_best_checkpoint_metric:
        logger.warning(f"{FLAG} {metric}: the checkpoint of the lowest is kept as the best; give {MAXIMIZE}, too")
    if metric in (LOSS, BLEU):
        return
    batches = trainer.get_valid_iterator(split).next_epoch_itr(shuffle=False, set_dataset_epoch=False)
    with metrics.aggregate(new_root=True) as figures:
        trainer.valid_step(next(batches))
    known = {*figures.get_smoothed_values(), "num_updates"}
    if metric not in known:
        raise InputError(f"{FLAG} {metric}: validation has no such figure; name one of {', '.join(sorted(known))}")
