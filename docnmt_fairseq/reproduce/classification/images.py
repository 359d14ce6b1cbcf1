"""Images and their classifiers ([Z] sec. 4.6-4.7): convolutions, context-aware or not, a hidden layer, a softmax."""

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import List, Sequence, Tuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.ca_layers.convolution import ContextAwareConvolution, ConvolutionalResidual, same_padding
from docnmt_fairseq.ca_layers.feed_forward import ResidualBlock
from docnmt_fairseq.corpus.files import DAMAGED
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.capture import ContextFreeIndicator, capture
from docnmt_fairseq.reproduce.classification.training import Batch

CIFAR_SHAPE = (3, 32, 32)
KINDS = ("cnn", "ca-cnn", "ca-res")


@dataclass
class Images:
    """Images [N, depth, height, width] of bytes and their labels [N]; see ``Examples``."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, numbers: Tensor, device: torch.device) -> Batch:
        """Images between 0 and 1."""
        return (self.images[numbers].to(device).float() / 255,), self.labels[numbers].to(device)


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the format of MNIST, perhaps gzipped.

    Raises:
        InputError: not such a file.
    """
    content = _content(path)
    dimensions = content[3] if len(content) > 3 and content[:3] == b"\0\0\x08" else 0
    shape = tuple(np.frombuffer(content[4 : 4 + 4 * dimensions], dtype=">i4").tolist())
    if not dimensions or len(content) != 4 + 4 * dimensions + int(np.prod(shape)):
        raise InputError(f"{path}: not a file of MNIST (IDX, bytes)")
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def read_mnist(images: Path, labels: Path) -> Images:
    """The images and labels of two files of MNIST.

    Raises:
        InputError: not such files, or of different numbers.
    """
    found, of_labels = read_idx(images), read_idx(labels)
    if found.ndim != 3 or of_labels.ndim != 1 or len(found) != len(of_labels):
        raise InputError(f"{images} and {labels}: expected images and as many labels")
    return Images(torch.from_numpy(found.copy())[:, None], torch.from_numpy(of_labels.astype(np.int64)))


def read_cifar(paths: Sequence[Path]) -> Images:
    """The images and labels of files of CIFAR-10's binary version: a label and 3,072 bytes each.

    Raises:
        InputError: not such a file.
    """
    rows: List[np.ndarray] = []
    size = 1 + int(np.prod(CIFAR_SHAPE))
    for path in paths:
        content = _content(path)
        if not content or len(content) % size:
            raise InputError(f"{path}: not a file of CIFAR-10's binary version")
        rows.append(np.frombuffer(content, dtype=np.uint8).reshape(-1, size))
    joined = np.concatenate(rows)
    images = torch.from_numpy(joined[:, 1:].copy()).unflatten(1, CIFAR_SHAPE)
    return Images(images, torch.from_numpy(joined[:, 0].astype(np.int64)))


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except DAMAGED as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


class Convolution(nn.Module):
    """An ordinary convolution, whose result has the size of the input."""

    def __init__(self, inputs: int, outputs: int, kernel: Tuple[int, int]):
        super().__init__()
        self.kernel = kernel
        self.convolution = nn.Conv2d(inputs, outputs, kernel)

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, *size]."""
        return self.convolution(F.pad(x, same_padding(self.kernel)))


class ImageClassifier(nn.Module):
    """Convolutions one behind the other, each with a rectifier, a hidden layer and a softmax ([Z] Fig. 19 a).

    Args:
        kind: of the convolutions, in ``KINDS``.
        shape: of images, [depth, height, width].
        layers: how many convolutions.
        depth: of each.
        kernel: side of a patch.
        hidden: units of the hidden layer.
        classes: how many.
        sublayers: of each ca-res.
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
            of_layer = inputs if number == 0 else depth
            if kind == "ca-res":
                convolutions.append(ConvolutionalResidual(ResidualBlock(sublayers), of_layer, depth, patch))
                continue
            made = ContextAwareConvolution if kind == "ca-cnn" else Convolution
            convolutions += [made(of_layer, depth, patch), nn.ReLU()]
        self.convolutions = nn.Sequential(*convolutions)
        self.hidden = nn.Linear(depth * height * width, hidden)
        self.output = nn.Linear(hidden, classes)

    def multiplications(self, shape: Sequence[int]) -> int:
        """How many an image [depth, height, width] takes: every weight of a convolution meets every place."""
        places = shape[1] * shape[2]
        rest = sum(weight.numel() for layer in (self.hidden, self.output) for weight in layer.parameters())
        return places * sum(weight.numel() for weight in self.convolutions.parameters()) + rest

    def forward(self, images: Tensor) -> Tensor:
        """Logits [B, classes]."""
        return self.output(torch.relu(self.hidden(self.convolutions(images).flatten(1))))


@torch.no_grad()
def write_sigma(model: ImageClassifier, images: Tensor, path: Path) -> None:
    """Writes a picture of images and, below, the χ of each place of theirs in the first layer ([Z] Fig. 18).

    Args:
        model: with context-aware convolutions.
        images: [B, depth, height, width] between 0 and 1.
        path: ``.png``.
    """
    with capture(ContextFreeIndicator) as recording:
        model(images)
    shown = next(evidence for _, evidence in recording.entries if isinstance(evidence, ContextFreeIndicator))
    chi = shown.chi.view(len(images), *images.shape[2:])
    rows = [torch.cat([*part], dim=1) for part in (images.mean(1), chi)]
    Image.fromarray((torch.cat(rows) * 255).round().to("cpu", torch.uint8).numpy()).save(path)


def made_up(images: int, shape: Sequence[int], seed: int) -> Images:
    """Images of a bright bar, upright or lying, which is the label."""
    generator = torch.Generator().manual_seed(seed)
    found = torch.randint(0, 60, (images, *shape), generator=generator, dtype=torch.uint8)
    labels = torch.arange(images) % 2
    for number, label in enumerate(labels.tolist()):
        place = int(torch.randint(2, min(shape[1:]) - 2, (), generator=generator))
        bar = found[number, :, place] if label else found[number, :, :, place]
        bar.fill_(250)
    return Images(found, labels)
