"""Hours of trainings: updates by seconds an update, which a log tells, or a published speed.

Of the Transformer base model, Vaswani et al. (2017, sec. 5.1-5.2) say that an update of 25,000 target tokens takes 0.4
seconds on 8 NVIDIA P100: 7,812 tokens a second on one. Newer GPUs are faster, small batches and other models slower.
"""

import re
import statistics
from pathlib import Path
from typing import Optional

from docnmt_fairseq.recipes.dataset import DatasetConfig
from docnmt_fairseq.recipes.machines import last_given
from docnmt_fairseq.recipes.models import Model
from docnmt_fairseq.reproduce.base import Request

TOKENS_A_SECOND = 25_000 / 0.4 / 8
TOKENS_A_LINE = 16  # of a caption, with its end; only where --batch-size counts lines
SOURCES = (
    "Hours GPU: of models whose training has begun here, from the updates a second of its log; of others as if each "
    "were a Transformer base on one NVIDIA P100, 7,812 target tokens a second (Vaswani et al. 2017, sec. 5.1-5.2).",
    "Hours CPU: of one core, by speeds measured on one; trainings among them are shorter on a GPU, to no known degree.",
)
_UPDATES_A_SECOND = re.compile(r'"ups": "([\d.]+)"')


def training_hours(dataset: DatasetConfig, model: Model, request: Request, folder: Path) -> float:
    """The GPU hours of one training.

    Args:
        dataset: of the recipe.
        model: what is trained.
        request: may say other updates.
        folder: of the model, where its log is once it has begun.
    """
    updates = request.updates or dataset.training.updates
    speed = logged_speed(folder / "train.log")
    if speed is None:
        speed = TOKENS_A_SECOND / _tokens_of_an_update(dataset, model, request)
    return updates / speed / 3600


def _tokens_of_an_update(dataset: DatasetConfig, model: Model, request: Request) -> int:
    """As many as a batch may have, by its tokens and by its documents where each is a line."""
    tokens = dataset.training.batch_tokens * model.sentences
    documents = last_given("--batch-size", [*dataset.training.options, *request.train_options])
    if documents is None or not documents.isdecimal() or not dataset.prepare.get("one_document_a_line"):
        return tokens
    return min(tokens, int(documents) * TOKENS_A_LINE)


def logged_speed(log: Path) -> Optional[float]:
    """Updates a second that a training logged, the median; None: it logged none."""
    if not log.exists():
        return None
    speeds = [float(found) for found in _UPDATES_A_SECOND.findall(log.read_text(encoding="utf-8", errors="replace"))]
    speeds = [speed for speed in speeds if speed > 0]
    return statistics.median(speeds) if speeds else None
