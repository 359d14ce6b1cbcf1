"""What the experiments tell while they run."""

import logging
from contextlib import contextmanager
from typing import Iterator

from docnmt_fairseq.cli import only_warnings


@contextmanager
def steps_told() -> Iterator[None]:
    """Inside the block, or the function that it decorates, steps are logged, and of fairseq only what is wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s | %(message)s", datefmt="%H:%M:%S")
    with only_warnings(["fairseq"]):
        yield
