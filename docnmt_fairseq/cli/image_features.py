"""Image features for --extra-sources features:NAME: the last convolutional layer of VGG-16.

The output has one image per line of the text, 196 regions of 512 numbers each. The weights have torchvision's names.
"""

import argparse
from pathlib import Path

from docnmt_fairseq.cli._options import positive

HELP = "image features, a second source of captions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.add_argument("--images", type=Path, required=True, metavar="DIR", help="folder with the images")
    parser.add_argument("--list", type=Path, required=True, metavar="FILE", help="file of image names, one per line")
    parser.add_argument("--weights", type=Path, required=True, metavar="FILE", help="weights of torchvision's VGG-16")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="output file, SPLIT.NAME.npy")
    parser.add_argument("--batch-size", type=positive, default=32, metavar="N", help="images per batch (default: 32)")
    parser.add_argument("--device", default="cpu", help="e.g. cuda (default: cpu)")


def run(args: argparse.Namespace) -> None:
    """Writes the features and prints the path."""
    from docnmt_fairseq.corpus.files import read_lines
    from docnmt_fairseq.data.image_features import VGG16, write_features

    images = [args.images / name for name in read_lines(args.list) if name]
    write_features(images, VGG16.of(args.weights), args.output, args.batch_size, args.device)
    print(args.output)
