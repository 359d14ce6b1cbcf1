"""Figures ``images``: image classifiers with plain, context-aware or residual convolutions ([Z] sec. 4.6-4.7)."""

import gzip
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.ca_layers.convolution import ContextAwareConvolution, ConvolutionalResidual, same_padding
from docnmt_fairseq.ca_layers.feed_forward import ResidualBlock
from docnmt_fairseq.layers.capture import ContextFreeIndicator, capture
from docnmt_fairseq.reproduce.base import FIGURES, Cell
from docnmt_fairseq.reproduce.figures.classification import Accuracies, Batch, Budget, train

SHAPES = {"mnist": (1, 28, 28), "cifar": (3, 32, 32)}
SMOKE_SHAPE = (8, 8)
KINDS = ("cnn", "ca-cnn", "ca-res")
SIZES = ("layers", "kernel", "depth", "sublayers")
MULTIPLICATIONS_PER_SECOND = 20e9  # of convolutions, on one CPU core: MNIST 14e9, CIFAR-10 27e9
MNIST_FILES = ("images-idx3-ubyte", "labels-idx1-ubyte")
PICTURES = 8


@FIGURES.register("images")
class ImagesFigures(Accuracies):
    """Accuracy of a kind of convolution on ``mnist`` or ``cifar``.

    For CA-CNN, pictures of χ early and at the end of the training are written next to the table ([Z] Fig. 18).
    """

    settings = ("set", "kind", *SIZES, "em_steps", "take", "updates")

    def accuracies(self, cell: Cell, seed: int) -> List[float]:
        examples, test = self._data(cell.settings["set"])
        budget = self.budget_of(cell)
        early = max(1, budget.updates // 10 // budget.every) * budget.every
        model = self._model(cell, tuple(examples.images.shape[1:]))

        def write_pictures(update: int) -> None:
            if cell.settings["kind"] == "ca-cnn" and update in (early, budget.updates):
                (images,), _ = test.batch(torch.arange(min(PICTURES, len(test))), self.device)
                name = f"chi-{cell.settings['set']}-{cell.row}-{seed}-{update}.png".replace(" ", "_").replace("/", "_")
                write_chi(model, images, self.request.output / name)

        return train(model, examples, test, budget, seed, self.device, write_pictures)

    def hours(self) -> float:
        """CPU hours from the multiplications of the convolutions, twice as many backward as forward."""
        seconds = 0.0
        for cell in self.cells:
            budget, (channels, *size) = self.budget_of(cell), SHAPES[cell.settings["set"]]
            given = {"layers": 1, "kernel": 8, "depth": 32, **cell.settings}
            weights = given["kernel"] ** 2 * given["depth"] * (channels + (given["layers"] - 1) * given["depth"])
            sublayers = given.get("sublayers", 2) if given["kind"] == "ca-res" else 1
            per_image = math.prod(size) * weights * sublayers
            seconds += budget.updates * 3 * budget.batch * per_image / MULTIPLICATIONS_PER_SECOND
        return len(self.request.seeds) * seconds / 3600

    def budget_of(self, cell: Cell) -> Budget:
        return self.budget(cell, updates=10_000, batch=100, lr=0.01)

    def _model(self, cell: Cell, shape: Tuple[int, ...]) -> "ImageClassifier":
        sizes: Dict[str, Any] = {name: cell.settings[name] for name in SIZES if name in cell.settings}
        if self.request.smoke:
            sizes.update(depth=4, kernel=3)
        hidden = 128 if cell.settings["set"] == "mnist" else 512
        return ImageClassifier(cell.settings["kind"], shape, hidden=hidden, **sizes)

    @cache  # noqa: B019  (lives as long as the run)
    def _data(self, name: str) -> Tuple["Images", "Images"]:
        if self.request.smoke:
            shape = (SHAPES[name][0], *SMOKE_SHAPE)
            return synthetic_images(80, shape, seed=0), synthetic_images(40, shape, seed=1)
        if name == "mnist":
            train_set, test = (
                read_mnist(*(self.file(f"{part}-{what}", f"{part}-{what}.gz") for what in MNIST_FILES))
                for part in ("train", "t10k")
            )
            return train_set, test
        train_set = read_cifar([self.file(f"data_batch_{number}.bin") for number in range(1, 6)])
        return train_set, read_cifar([self.file("test_batch.bin")])


@dataclass
class Images:
    """Images [N, depth, height, width] of bytes and their labels [N]; see ``Examples``."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, numbers: Tensor, device: torch.device) -> Batch:
        """Returns images with values from 0 to 1."""
        return (self.images[numbers].to(device).float() / 255,), self.labels[numbers].to(device)


def read_idx(path: Path) -> np.ndarray:
    """Reads an array of bytes in the format of MNIST, perhaps gzipped."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    dimensions = content[3]
    shape = np.frombuffer(content[4 : 4 + 4 * dimensions], dtype=">i4")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def read_mnist(images: Path, labels: Path) -> Images:
    """Reads the images and labels of MNIST."""
    pixels, numbers = read_idx(images), read_idx(labels)
    return Images(torch.from_numpy(pixels.copy())[:, None], torch.from_numpy(numbers.astype(np.int64)))


def read_cifar(paths: Sequence[Path]) -> Images:
    """Reads the binary version of CIFAR-10: a label and 3,072 bytes per image."""
    size = 1 + math.prod(SHAPES["cifar"])
    joined = np.concatenate([np.fromfile(path, dtype=np.uint8).reshape(-1, size) for path in paths])
    images = torch.from_numpy(joined[:, 1:].copy()).unflatten(1, SHAPES["cifar"])
    return Images(images, torch.from_numpy(joined[:, 0].astype(np.int64)))


class Convolution(nn.Module):
    """Convolution whose output has the size of the input."""

    def __init__(self, inputs: int, outputs: int, kernel: Tuple[int, int]):
        super().__init__()
        self.kernel = kernel
        self.convolution = nn.Conv2d(inputs, outputs, kernel)

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, *size]."""
        return self.convolution(F.pad(x, same_padding(self.kernel)))


class ImageClassifier(nn.Module):
    """Convolutions with rectifiers, a hidden layer and a softmax ([Z] Fig. 19 a).

    Args:
        kind: kind of convolution, in ``KINDS``.
        shape: shape of images, [depth, height, width].
        layers: number of convolutions.
        depth: channels of each.
        kernel: side of a patch.
        hidden: units of the hidden layer.
        classes: number of classes.
        sublayers: sublayers of each ca-res.
    """

    def __init__(
        self,
        kind: str,
        shape: Sequence[int],
        layers: int = 1,
        depth: int = 32,
        kernel: int = 8,
        hidden: int = 128,
        classes: int = 10,
        sublayers: int = 2,
    ):
        super().__init__()
        inputs, height, width = shape
        patch = (kernel, kernel)
        convolutions: List[nn.Module] = []
        for number in range(layers):
            channels = inputs if number == 0 else depth
            if kind == "ca-res":
                convolutions.append(ConvolutionalResidual(ResidualBlock(sublayers), channels, depth, patch))
                continue
            convolution = ContextAwareConvolution if kind == "ca-cnn" else Convolution
            convolutions += [convolution(channels, depth, patch), nn.ReLU()]
        self.convolutions = nn.Sequential(*convolutions)
        self.hidden = nn.Linear(depth * height * width, hidden)
        self.output = nn.Linear(hidden, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits [B, classes]."""
        return self.output(torch.relu(self.hidden(self.convolutions(images).flatten(1))))


@torch.no_grad()
def write_chi(model: ImageClassifier, images: Tensor, path: Path) -> None:
    """Writes a picture of images and, below, χ at each position in the first layer ([Z] Fig. 18).

    Args:
        model: model with context-aware convolutions.
        images: [B, depth, height, width] with values from 0 to 1.
        path: ``.png`` file.
    """
    with capture(ContextFreeIndicator) as captured:
        model(images)
    indicator = next(entry for _, entry in captured.entries if isinstance(entry, ContextFreeIndicator))
    chi = indicator.chi.view(len(images), *images.shape[2:])
    rows = [torch.cat([*part], dim=1) for part in (images.mean(1), chi)]
    Image.fromarray((torch.cat(rows) * 255).round().to("cpu", torch.uint8).numpy()).save(path)


def synthetic_images(images: int, shape: Sequence[int], seed: int) -> Images:
    """Returns images of a bright bar, vertical or horizontal, which is the label."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 60, (images, *shape), generator=generator, dtype=torch.uint8)
    labels = torch.arange(images) % 2
    for number, label in enumerate(labels.tolist()):
        place = int(torch.randint(2, min(shape[1:]) - 2, (), generator=generator))
        bar = pixels[number, :, place] if label else pixels[number, :, :, place]
        bar.fill_(250)
    return Images(pixels, labels)
