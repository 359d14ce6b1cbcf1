"""Prints the folder of the package, for fairseq's commands outside of the repository.

fairseq-train data-bin --user-dir $(docnmt user-dir) --task document_translation ...
"""

import argparse
from pathlib import Path

import docnmt_fairseq

HELP = "print the folder to give to fairseq's --user-dir"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds nothing."""


def run(args: argparse.Namespace) -> None:
    """Prints the folder."""
    print(Path(docnmt_fairseq.__file__).parent)
