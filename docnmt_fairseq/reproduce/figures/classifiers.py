"""Figures ``sentiment`` and ``images``: accuracies of the small classifiers of [Z] sec. 4.2, 4.6 and 4.7."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Dict, List, Tuple

import torch

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.result_files import read_json, write_json
from docnmt_fairseq.reproduce.base import FIGURES, Cell, Figures
from docnmt_fairseq.reproduce.classification.images import (
    CIFAR_SHAPE,
    ImageClassifier,
    Images,
    made_up,
    read_cifar,
    read_mnist,
    write_sigma,
)
from docnmt_fairseq.reproduce.classification.texts import (
    Bags,
    classifier,
    dictionary_of,
    read_labelled,
    write_made_up,
)
from docnmt_fairseq.reproduce.classification.training import Budget, train

SMOKE_UPDATES = 60
LOOKS, LONGEST = 100, 5_000  # at the test set, and most updates between two: "best" is not to miss its peak
TEXT_UPDATES, TEXT_UPDATES_A_SECOND = 6_000_000, 320  # CA-BSFE of 90,000 words, texts of 230, on one core of a CPU
MULTIPLICATIONS_A_SECOND = 20e9  # of convolutions, on one core of a CPU: MNIST 14e9, CIFAR-10 27e9
SHAPES = {"mnist": (1, 28, 28), "cifar": CIFAR_SHAPE}
SMOKE_SHAPE = (8, 8)
PICTURED = 8  # images


class Accuracies(Figures):
    """What both kinds have in common: one training a cell and seed, of which the best or the last accuracy is taken.

    The data are files of ``--raw``; a smoke run makes some up.
    """

    heeds = ("--updates",)
    processor = "CPU"

    @property
    def device(self) -> torch.device:
        """Of models."""
        return torch.device("cuda" if torch.cuda.is_available() and not self.request.machine.cpu else "cpu")

    def budget(self, cell: Cell, updates: int, batch: int, lr: float) -> Budget:
        """How the model of a cell is trained, unless it is asked for otherwise."""
        updates = self.request.updates or (
            SMOKE_UPDATES if self.request.smoke else cell.settings.get("updates", updates)
        )
        return Budget(updates, batch, lr, min(max(1, updates // LOOKS), LONGEST), cell.settings.get("em_steps", 0))

    def file(self, *names: str) -> Path:
        """The first of these files that is in ``--raw``.

        Raises:
            InputError: there is none.
        """
        if self.request.raw is None:
            raise InputError(f"--raw: give a folder with {names[0]}")
        found = next((self.request.raw / name for name in names if (self.request.raw / name).is_file()), None)
        if found is None:
            raise InputError(f"{self.request.raw}: no {' or '.join(names)}")
        return found

    def values(self) -> Dict[Cell, List[float]]:
        """See :class:`Figures`."""
        return {cell: [self._value(cell, seed) for seed in self.request.seeds] for cell in self.cells}

    def accuracies(self, cell: Cell, seed: int) -> List[float]:
        """The accuracy on the test set at every look at it."""
        raise NotImplementedError

    def _value(self, cell: Cell, seed: int) -> float:
        path = self.request.output / "accuracies.json"
        known = read_json(path) if path.exists() else {}
        request = self.request
        about = [dict(cell.settings), seed, request.updates, request.smoke, str(request.raw)]
        key = json.dumps(about, sort_keys=True)
        if key not in known:  # a training takes hours: each is kept as soon as it is there
            torch.manual_seed(seed)
            known[key] = self.accuracies(cell, seed)
            request.output.mkdir(parents=True, exist_ok=True)
            write_json(path, known)
        return max(known[key]) if cell.settings.get("take") == "best" else float(known[key][-1])


@FIGURES.register("sentiment")
class Sentiment(Accuracies):
    """A cell is a way to make a vector of a text's words (``bag``), and a set: SET.train.tsv, SET.test.tsv."""

    settings = ("set", "bag", "em_steps", "take", "updates")

    def hours(self) -> float:
        """See :class:`Figures`; a GPU is of little use here."""
        updates = (self.request.updates or cell.settings.get("updates", TEXT_UPDATES) for cell in self.cells)
        return float(len(self.request.seeds) * sum(updates) / TEXT_UPDATES_A_SECOND / 3600)

    def accuracies(self, cell: Cell, seed: int) -> List[float]:
        """See :class:`Accuracies`."""
        examples, test, symbols = self._data(cell.settings["set"])
        model = classifier(cell.settings["bag"], symbols)
        budget = self.budget(cell, updates=TEXT_UPDATES, batch=16, lr=0.1)
        return train(model, examples, test, budget, seed, self.device)

    @cache  # noqa: B019  (lives as long as the run)
    def _data(self, name: str) -> Tuple[Bags, Bags, int]:
        paths = []
        for number, part in enumerate(("train", "test")):
            file = f"{name}.{part}.tsv"
            if self.request.smoke:
                path = self.request.output / "made-up" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                write_made_up(path, 64, seed=number)
            else:
                path = self.file(file)
            paths.append(read_labelled(path))
        dictionary = dictionary_of(paths[0])
        examples, test = (Bags.of(texts, dictionary) for texts in paths)
        return examples, test, len(dictionary)


@FIGURES.register("images")
class ImagesFigures(Accuracies):
    """A cell is a kind of convolution with its sizes, and a set: ``mnist`` or ``cifar``.

    Of CA-CNN on MNIST pictures of χ are written beside the table, from the beginning and the end ([Z] Fig. 18).
    """

    settings = ("set", "kind", "layers", "kernel", "depth", "sublayers", "em_steps", "take", "updates")

    def accuracies(self, cell: Cell, seed: int) -> List[float]:
        """See :class:`Accuracies`."""
        examples, test = self._data(cell.settings["set"])
        model = self._model(cell, tuple(examples.images.shape[1:]))
        budget = self._budget(cell)
        pictured = cell.settings["kind"] == "ca-cnn"
        early = max(1, budget.updates // 10 // budget.every) * budget.every  # the look after a tenth

        def watch(update: int) -> None:
            if pictured and update in (early, budget.updates):
                (images,), _ = test.batch(torch.arange(min(PICTURED, len(test))), self.device)
                place = f"chi-{cell.settings['set']}-{cell.row}-{seed}-{update}.png".replace(" ", "_").replace("/", "_")
                write_sigma(model, images, self.request.output / place)

        return train(model, examples, test, budget, seed, self.device, watch)

    def hours(self) -> float:
        """See :class:`Figures`: by the multiplications of each model, backward twice as many as forward."""
        seconds = 0.0
        for cell in self.cells:
            budget, shape = self._budget(cell), SHAPES[cell.settings["set"]]
            with torch.device("meta"):  # no memory, no random numbers
                image = self._model(cell, shape).multiplications(shape)
            seconds += budget.updates * 3 * budget.batch * image / MULTIPLICATIONS_A_SECOND
        return len(self.request.seeds) * seconds / 3600

    def _budget(self, cell: Cell) -> Budget:
        return self.budget(cell, updates=10_000, batch=100, lr=0.01)

    def _model(self, cell: Cell, shape: Tuple[int, ...]) -> ImageClassifier:
        """The model of a cell for images of that shape."""
        sizes: Dict[str, Any] = {
            name: cell.settings[name] for name in ("layers", "kernel", "depth", "sublayers") if name in cell.settings
        }
        if self.request.smoke:
            sizes.update(depth=4, kernel=3)
        hidden = 128 if cell.settings["set"] == "mnist" else 512
        return ImageClassifier(cell.settings["kind"], shape, hidden=hidden, **sizes)

    @cache  # noqa: B019  (lives as long as the run)
    def _data(self, name: str) -> Tuple[Images, Images]:
        if self.request.smoke:
            shape = (SHAPES[name][0], *SMOKE_SHAPE)
            return made_up(80, shape, seed=0), made_up(40, shape, seed=1)
        if name == "mnist":
            train_set, test = (
                read_mnist(*(self.file(f"{part}-{what}", f"{part}-{what}.gz") for what in MNIST_FILES))
                for part in ("train", "t10k")
            )
            return train_set, test
        train_set = read_cifar([self.file(f"data_batch_{number}.bin") for number in range(1, 6)])
        return train_set, read_cifar([self.file("test_batch.bin")])


MNIST_FILES = ("images-idx3-ubyte", "labels-idx1-ubyte")
