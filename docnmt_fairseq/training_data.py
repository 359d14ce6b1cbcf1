"""What a training trains on, told apart from what it validates on: a split may be both.

A task of fairseq's has one data set for a split's name. But what is trained on is shuffled, and context is hidden in it
at random; a loss of that is no validation. So fairseq's trainer says when it asks for what it trains on, and whoever
else asks -- its validation, fairseq-validate, fairseq-generate -- is given the split as it is.

And at the end of an epoch a process may have a batch less than others. Where it lacks the last one of an update,
fairseq does not count the other batches of this process, whose gradients it adds all the same.
"""

from contextlib import contextmanager, nullcontext
from typing import Any, Collection, Iterator, List

IN_TRAINING = "{} in training"  # the name of what is trained on, beside the split's own


class TrainingData:
    """A task of which some splits are asked for in order to train on them."""

    serves_training = False  # at present

    @contextmanager
    def for_training(self) -> Iterator[None]:
        """Within it splits are loaded and given as training has them."""
        before, self.serves_training = self.serves_training, True
        try:
            yield
        finally:
            self.serves_training = before

    def place_of(self, split: str) -> str:
        """The name under which a split is kept as it is asked for now."""
        return IN_TRAINING.format(split) if self.serves_training else split

    def place_among(self, loaded: Collection[str], split: str) -> str:
        """The name under which a split is found; one that was loaded for training alone is given as it was loaded."""
        alone = split not in loaded and IN_TRAINING.format(split) in loaded
        return IN_TRAINING.format(split) if alone else self.place_of(split)


def patch_fairseq() -> None:
    """Lets fairseq's trainer say so, and train on the batches that there are, in this process."""
    from fairseq.trainer import Trainer

    iterate, step = Trainer.get_train_iterator, Trainer.train_step

    def get_train_iterator(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.task.for_training() if isinstance(self.task, TrainingData) else nullcontext():
            return iterate(self, *args, **kwargs)

    def train_step(self: Any, samples: List[Any], *args: Any, **kwargs: Any) -> Any:
        there = [sample for sample in samples if sample]
        return step(self, there or samples[:1], *args, **kwargs)  # who has none at all goes along with the others

    Trainer.get_train_iterator, Trainer.train_step = get_train_iterator, train_step
