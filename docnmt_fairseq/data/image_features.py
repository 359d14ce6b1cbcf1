"""Features of images, as a source beside their captions: the last convolutional layer of VGG-16 ([L] sec. 4.1)."""

from pathlib import Path
from typing import List, Sequence, Union

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from docnmt_fairseq.corpus.files import npy_on_disk
from docnmt_fairseq.errors import InputError, first_line

# Simonyan and Zisserman 2014, configuration D, without its last pooling; pools are None.
LAYERS: Sequence[Union[int, None]] = (64, 64, None, 128, 128, None, 256, 256, 256, None) + 2 * (512, 512, 512, None)
SIDE, SHORTER_SIDE = 224, 256  # pixels: of the square that is seen, and what images are scaled to before
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the colours of ImageNet, which weights expect
REGIONS, WIDTH = 14 * 14, 512


class VGG16(nn.Module):
    """The convolutions of VGG-16, with the names of torchvision's parameters."""

    def __init__(self) -> None:
        super().__init__()
        layers: List[nn.Module] = []
        width = 3
        for outputs in LAYERS[:-1]:
            if outputs is None:
                layers.append(nn.MaxPool2d(2))
            else:
                layers += [nn.Conv2d(width, outputs, 3, padding=1), nn.ReLU()]
                width = outputs
        self.features = nn.Sequential(*layers)

    def forward(self, images: Tensor) -> Tensor:
        """[B, 196, 512], a row a region, from images [B, 3, 224, 224]."""
        return self.features(images).flatten(2).transpose(1, 2)

    @classmethod
    def of(cls, path: Path) -> "VGG16":
        """The network with the weights in a file, as torchvision saves them.

        Raises:
            InputError: no such file, or other weights.
        """
        model = cls()
        try:
            found = torch.load(path, map_location="cpu", weights_only=True)
            model.load_state_dict({name: value for name, value in found.items() if name.startswith("features.")})
        except Exception as error:  # whatever a file that is none happens to cause
            reason = first_line(error)
            raise InputError(f"--weights {path}: not VGG-16's as torchvision saves them ({reason})") from error
        return model.eval()


def pixels(path: Path) -> Tensor:
    """An image as VGG-16 wants it, [3, 224, 224]: scaled, its middle, normalised.

    Raises:
        InputError: not an image.
    """
    try:
        with Image.open(path) as opened:
            image: Image.Image = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: not an image ({error})") from error
    scale = SHORTER_SIDE / min(image.size)
    width, height = (max(SHORTER_SIDE, round(side * scale)) for side in image.size)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    image = image.resize((width, height), Image.Resampling.BILINEAR).crop((left, top, left + SIDE, top + SIDE))
    colours = (np.asarray(image, dtype=np.float32) / 255 - np.array(MEAN)) / np.array(DEVIATION)
    return torch.from_numpy(colours.astype(np.float32)).permute(2, 0, 1)


def write_features(images: Sequence[Path], model: VGG16, output: Path, batch: int = 32, device: str = "cpu") -> None:
    """Writes what the network makes of every image, [images, 196, 512] in half precision, whole or not at all.

    Args:
        images: one a line of the text, in its order; some may come several times.
        model: the network.
        output: ``.npy`` to write.
        batch: images at a time.
        device: of the network.

    Raises:
        InputError: no image, or a file that is none; no such device; the output cannot be written.
    """
    if not images:
        raise InputError(f"{output}: no images")
    missing = next((path for path in images if not path.is_file()), None)
    if missing is not None:
        raise InputError(f"{missing}: no such image")
    try:
        model = model.to(device)
    except (RuntimeError, AssertionError) as error:  # the latter: PyTorch without CUDA
        raise InputError(f"--device {device}: cannot be used: {first_line(error)}") from error
    with npy_on_disk(output, (len(images), REGIONS, WIDTH), np.float16) as features, torch.inference_mode():
        for start in range(0, len(images), batch):
            seen = torch.stack([pixels(path) for path in images[start : start + batch]]).to(device)
            features[start : start + len(seen)] = model(seen).to("cpu", torch.float16).numpy()
