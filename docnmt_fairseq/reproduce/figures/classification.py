"""Accuracies of the classifiers of [Z] sec. 4.2, 4.6 and 4.7: their training, and what both kinds have in common."""

import json
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.ca_layers.decomposition import AlternatingUpdates
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import read_json, write_json
from docnmt_fairseq.reproduce.base import Cell, Figures
from docnmt_fairseq.reproduce.drawing import Curve, draw_curves

SMOKE_UPDATES = 60
EVALUATIONS, MAX_INTERVAL = 100, 5_000  # evaluations per training, updates between two: so as not to miss the peak

Batch = Tuple[Tuple[Any, ...], Tensor]  # arguments of the model, and labels [B]


class Examples(Protocol):
    """Contract of a labelled data set."""

    def __len__(self) -> int: ...

    def batch(self, numbers: Tensor, device: torch.device) -> Batch:
        """Returns the examples with these numbers."""


@dataclass(frozen=True)
class Budget:
    """Training with Adagrad, as all trainings of [Z].

    Attributes:
        updates: number of updates.
        batch: examples per update.
        lr: learning rate.
        every: updates between evaluations on the test set.
        em_steps: updates after which χ and what it weights alternate, 0: both are always trained.
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
    callback: Optional[Callable[[int], None]] = None,
) -> List[float]:
    """Trains a model and returns its test accuracy in per cent at every evaluation.

    Args:
        model: returns logits [B, classes].
        examples, test: training and test set.
        budget: training settings.
        seed: seed of the order of examples.
        device: device of the model.
        callback: called with the number of updates after every evaluation.
    """
    model = model.to(device).train()
    alternating = AlternatingUpdates(model, budget.em_steps) if budget.em_steps else None
    optimiser = torch.optim.Adagrad(model.parameters(), lr=budget.lr)
    accuracies = []
    for update, numbers in enumerate(_batches(len(examples), budget, seed), start=1):
        inputs, labels = examples.batch(numbers, device)
        if alternating is not None:
            alternating.set_num_updates(update - 1)
        optimiser.zero_grad()
        F.cross_entropy(model(*inputs), labels).backward()
        if alternating is not None:
            alternating.clear_frozen()
        optimiser.step()
        if update % budget.every == 0 or update == budget.updates:
            accuracies.append(accuracy(model, test, device))
            if callback is not None:
                callback(update)
    return accuracies


def _batches(examples: int, budget: Budget, seed: int) -> Iterator[Tensor]:
    """Yields the numbers of the examples of every update, shuffled per epoch."""
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
    """Returns the accuracy in per cent."""
    model.eval()
    right = 0
    for numbers in torch.arange(len(examples)).split(batch):
        inputs, labels = examples.batch(numbers, device)
        right += int((model(*inputs).argmax(-1) == labels).sum())
    model.train()
    return 100 * right / len(examples)


class Accuracies(Figures):
    """Accuracies of classifiers: one training per cell and seed, whose best or last accuracy is the figure.

    The data are files of ``--raw``, or synthetic in a smoke run.
    """

    processor = "CPU"

    @property
    def device(self) -> torch.device:
        """Device of the models."""
        return torch.device("cuda" if torch.cuda.is_available() and not self.request.machine.cpu else "cpu")

    @abstractmethod
    def budget_of(self, cell: Cell) -> Budget:
        """Returns the training settings of a cell."""

    def draw(self, name: str) -> List[Path]:
        """Accuracy by update of the first seed, a picture per column ([Z] Fig. 9, 10, 17, 19 and 20)."""
        known, pictures = read_json(self._path) or {}, []
        for column in dict.fromkeys(cell.column for cell in self.cells):
            curves: Dict[str, Curve] = {}
            for cell in (cell for cell in self.cells if cell.column == column):
                budget = self.budget_of(cell)
                for number, value in enumerate(known.get(self._key(cell, self.request.seeds[0]), []), start=1):
                    point = min(number * budget.every, budget.updates), value
                    curves[cell.row] = [*curves.get(cell.row, []), point]
            if curves:
                path = self.request.output / f"{name}-{column}.png"
                pictures.append(draw_curves(path, curves, "update", f"accuracy on the test set, {column}"))
        return pictures

    def budget(self, cell: Cell, updates: int, batch: int, lr: float) -> Budget:
        """Returns the training settings of a cell; ``updates`` is the default."""
        default = SMOKE_UPDATES if self.request.smoke else cell.settings.get("updates", updates)
        updates = self.request.updates or default
        every = min(max(1, updates // EVALUATIONS), MAX_INTERVAL)
        return Budget(updates, batch, lr, every, cell.settings.get("em_steps", 0))

    def file(self, *names: str) -> Path:
        """Returns the first of these files that is in ``--raw``.

        Raises:
            InputError: there is none.
        """
        folder = self.request.raw
        found = [] if folder is None else [folder / name for name in names if (folder / name).is_file()]
        if not found:
            raise InputError(f"--raw {folder or '(not given)'}: no {' or '.join(names)}; give a folder with it")
        return found[0]

    def values(self) -> Dict[Cell, List[float]]:
        return {cell: [self._value(cell, seed) for seed in self.request.seeds] for cell in self.cells}

    @abstractmethod
    def accuracies(self, cell: Cell, seed: int) -> List[float]:
        """Trains the model of a cell and returns its test accuracy at every evaluation."""

    @property
    def _path(self) -> Path:
        return self.request.output / "accuracies.json"

    def _key(self, cell: Cell, seed: int) -> str:
        request = self.request
        settings = [dict(cell.settings), seed, request.updates, request.smoke, str(request.raw)]
        return json.dumps(settings, sort_keys=True)

    def _value(self, cell: Cell, seed: int) -> float:
        known, key = read_json(self._path) or {}, self._key(cell, seed)
        if key not in known:  # a training takes hours: each result is written at once
            torch.manual_seed(seed)
            known[key] = self.accuracies(cell, seed)
            write_json(self._path, known, indent=1)
        return max(known[key]) if cell.settings.get("take") == "best" else float(known[key][-1])
