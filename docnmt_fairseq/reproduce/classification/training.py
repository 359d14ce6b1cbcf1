"""Trains a classifier and watches its accuracy on the test set."""

from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional, Protocol, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.ca_layers.decomposition import AlternatingUpdates

Batch = Tuple[Tuple[Any, ...], Tensor]  # what the model is given, and labels [B]


class Examples(Protocol):
    """Contract of a set of examples with their labels."""

    def __len__(self) -> int: ...

    def batch(self, numbers: Tensor, device: torch.device) -> Batch:
        """The examples of these numbers."""


@dataclass(frozen=True)
class Budget:
    """How a classifier is trained, by Adagrad, as all of [Z] are.

    Attributes:
        updates: of the training.
        batch: examples of an update.
        lr: learning rate.
        every: updates between two looks at the test set.
        em_steps: updates after which χ and what it weighs take turns, 0: both are trained always.
    """

    updates: int
    batch: int
    lr: float
    every: int
    em_steps: int = 0


def train(
    model: nn.Module,
    examples: Examples,
    test: Examples,
    budget: Budget,
    seed: int,
    device: torch.device,
    watch: Optional[Callable[[int], None]] = None,
) -> List[float]:
    """Trains the model, and gives its accuracy on the test set, in per cent, at every look at it.

    Args:
        model: gives logits [B, classes].
        examples, test: what to train and test on.
        budget: how.
        seed: of the order of the examples.
        device: of the model.
        watch: is told the updates done at every look.
    """
    model = model.to(device).train()
    alternating = AlternatingUpdates(model, budget.em_steps) if budget.em_steps else None
    optimiser = torch.optim.Adagrad(model.parameters(), lr=budget.lr)
    found = []
    for update, numbers in enumerate(_batches(len(examples), budget, seed), start=1):
        given, labels = examples.batch(numbers, device)
        if alternating is not None:
            alternating.set_num_updates(update - 1)
        optimiser.zero_grad()
        F.cross_entropy(model(*given), labels).backward()
        if alternating is not None:
            alternating.clear_frozen()
        optimiser.step()
        if update % budget.every == 0 or update == budget.updates:
            found.append(accuracy(model, test, device))
            if watch is not None:
                watch(update)
    return found


def _batches(examples: int, budget: Budget, seed: int) -> Iterator[Tensor]:
    """Numbers of examples, of every update; each epoch in another order."""
    generator = torch.Generator().manual_seed(seed)
    done = 0
    while True:
        for numbers in torch.randperm(examples, generator=generator).split(budget.batch):
            if done == budget.updates:
                return
            done += 1
            yield numbers


@torch.no_grad()
def accuracy(model: nn.Module, examples: Examples, device: torch.device, batch: int = 256) -> float:
    """Examples that the model gets right, in per cent."""
    model.eval()
    right = 0
    for numbers in torch.arange(len(examples)).split(batch):
        given, labels = examples.batch(numbers, device)
        right += int((model(*given).argmax(-1) == labels).sum())
    model.train()
    return 100 * right / len(examples)
