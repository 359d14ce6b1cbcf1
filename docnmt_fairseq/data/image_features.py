"""Features of images as an extra source of their captions: the last convolutional layer of VGG-16 ([L] sec. 4.1)."""

from pathlib import Path
from typing import List, Sequence, Union

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from docnmt_fairseq.corpus.files import npy_on_disk
from docnmt_fairseq.errors import InputError

# Simonyan and Zisserman 2014, configuration D, without its last pooling layer; None: pooling.
LAYERS: Sequence[Union[int, None]] = (64, 64, None, 128, 128, None, 256, 256, 256, None) + 2 * (512, 512, 512, None)
SIDE, SHORTER_SIDE = 224, 256  # pixels: size of the centre crop, and of the shorter side before
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the colours of ImageNet
REGIONS, WIDTH = 14 * 14, 512


class VGG16(nn.Module):
    """Convolutional layers of VGG-16 with the parameter names of torchvision."""

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
        """Returns [B, 196, 512], one row per region, from images [B, 3, 224, 224]."""
        return self.features(images).flatten(2).transpose(1, 2)

    @classmethod
    def of(cls, path: Path) -> "VGG16":
        """Loads the weights of a file saved by torchvision."""
        model = cls()
        found = torch.load(path, map_location="cpu", weights_only=True)
        model.load_state_dict({name: value for name, value in found.items() if name.startswith("features.")})
        return model.eval()


def pixels(path: Path) -> Tensor:
    """Returns an image as input of VGG-16, [3, 224, 224]: scaled, centre crop, normalised."""
    with Image.open(path) as opened:
        image: Image.Image = opened.convert("RGB")
    scale = SHORTER_SIDE / min(image.size)
    width, height = (max(SHORTER_SIDE, round(side * scale)) for side in image.size)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    image = image.resize((width, height), Image.Resampling.BILINEAR).crop((left, top, left + SIDE, top + SIDE))
    colours = (np.asarray(image, dtype=np.float32) / 255 - np.array(MEAN)) / np.array(DEVIATION)
    return torch.from_numpy(colours.astype(np.float32)).permute(2, 0, 1)


def write_features(images: Sequence[Path], model: VGG16, output: Path, batch: int = 32, device: str = "cpu") -> None:
    """Writes the features of images, [images, 196, 512] in half precision."""
    missing = next((path for path in images if not path.is_file()), None)
    if missing is not None:
        raise InputError(f"{missing}: no such image")
    model = model.to(device)
    with npy_on_disk(output, (len(images), REGIONS, WIDTH), np.float16) as features, torch.inference_mode():
        for start in range(0, len(images), batch):
            seen = torch.stack([pixels(path) for path in images[start : start + batch]]).to(device)
            features[start : start + len(seen)] = model(seen).to("cpu", torch.float16).numpy()
