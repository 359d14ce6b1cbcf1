"""Features of images by VGG-16, whose weights are made up here."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from docnmt_fairseq.cli import main
from docnmt_fairseq.data.image_features import DEVIATION, MEAN, VGG16, pixels

CONVOLUTIONS = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)  # of torchvision's vgg16().features
POOLED_BEFORE = (5, 10, 17, 24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images, a list of them, and weights with what torchvision has besides."""
    folder = tmp_path_factory.mktemp("images")
    chance = np.random.default_rng(0)
    for name, size in (("a.png", (300, 260)), ("b.jpg", (225, 500))):
        Image.fromarray(chance.integers(0, 256, (*size[::-1], 3), dtype=np.uint8)).save(folder / name)
    (folder / "list.txt").write_text("a.png\nb.jpg\na.png\n")
    torch.manual_seed(0)
    model = VGG16()
    for name, parameter in model.named_parameters():
        if name.endswith("weight"):  # as PyTorch begins them, little but biases would come through 13 layers
            torch.nn.init.kaiming_normal_(parameter, nonlinearity="relu")
    torch.save({**model.state_dict(), "classifier.0.weight": torch.zeros(2, 2)}, folder / "vgg16.pth")
    return folder


def run(folder, *options):
    given = ["--images", str(folder), "--list", str(folder / "list.txt"), "--weights", str(folder / "vgg16.pth")]
    return main(["image-features", *given, "--output", str(folder / "train.image.npy"), *options])


def by_layers(weights, x):
    for number in CONVOLUTIONS:
        x = F.max_pool2d(x, 2) if number in POOLED_BEFORE else x
        x = F.conv2d(x, weights[f"features.{number}.weight"], weights[f"features.{number}.bias"], padding=1).clamp(
            min=0
        )
    return x


def test_features_equal_the_layers_of_vgg16(folder):
    assert run(folder, "--batch-size", "2") == 0
    found = np.load(folder / "train.image.npy")
    assert found.shape == (3, 196, 512) and np.array_equal(found[0], found[2])
    weights = torch.load(folder / "vgg16.pth", weights_only=True)
    expected = by_layers(weights, pixels(folder / "b.jpg")[None])[0]  # [512, 14, 14]
    rows = np.stack([expected[:, row, column] for row, column in np.ndindex(14, 14)])
    precision = {"rtol": 1e-3, "atol": 1e-4 * float(rows.max())}
    np.testing.assert_allclose(found[1], rows, **precision)
    for other in (found[0], rows.reshape(14, 14, 512).swapaxes(0, 1).reshape(196, 512)):  # the comparison can fail
        assert not np.allclose(found[1], other, **precision)


def test_images_are_scaled_cropped_and_normalised(tmp_path):
    image = np.zeros((512, 1024, 3), dtype=np.uint8)
    image[:, 512:] = 255
    Image.fromarray(image).save(tmp_path / "halves.png")
    found = pixels(tmp_path / "halves.png")
    assert found.shape == (3, 224, 224)
    for colour in range(3):
        assert found[colour, 100, 5] == pytest.approx(-MEAN[colour] / DEVIATION[colour], abs=1e-5)
        assert found[colour, 100, 219] == pytest.approx((1 - MEAN[colour]) / DEVIATION[colour], abs=1e-5)
