"""Features of images for --extra-sources features:NAME: what the last convolutional layer of VGG-16 says of regions.

An image a line of the text, 196 rows of 512 numbers each. Weights are of a file of yours, with torchvision's names.
"""

import argparse
from pathlib import Path

HELP = "features of images, a source beside their captions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="where the images are")
    parser.add_argument("--list", type=Path, required=True, metavar="FILE", help="an image's file name a line")
    parser.add_argument(
        "--weights", type=Path, required=True, metavar="FILE", help="of VGG-16, as torchvision has them"
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="to write, SPLIT.NAME.npy")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="images at a time (default: 32)")
    parser.add_argument("--device", default="cpu", help="e.g. cuda (default: cpu)")


def run(args: argparse.Namespace) -> None:
    """Writes the features, and prints where."""
    from docnmt_fairseq.corpus.files import read_lines
    from docnmt_fairseq.data.image_features import VGG16, write_features
    from docnmt_fairseq.errors import InputError

    if args.batch_size < 1:
        raise InputError(f"--batch-size {args.batch_size}: must be at least 1")
    images = [args.images / name.strip() for name in read_lines(args.list) if name.strip()]
    write_features(images, VGG16.of(args.weights), args.output, args.batch_size, args.device)
    print(args.output)
