"""Stock fairseq-preprocess over delimited subword text, and the check that nothing was lost on the way."""

import itertools
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from docnmt_fairseq.corpus.files import partial_path
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.lifetime import end_with_parent

DATA_BIN = "data-bin"

# With NumPy 2 and more than one worker, fairseq 0.12 adds up item addresses in 32 bits: past 2 GiB they overflow.
# Items are at most 4 bytes a token.
MOST_TOKENS_FOR_WORKERS = 2**29 - 1

logger = logging.getLogger(__name__)


class Expected(NamedTuple):
    """What one file of the data-bin must hold."""

    items: int
    documents: int
    tokens: int


def binarise(
    folder: Path,
    stage: str,
    sides: Sequence[str],
    dictionaries: Sequence[Path],
    expected: Dict[str, Tuple[Expected, ...]],
    *,
    joint: bool,
    workers: int,
) -> None:
    """Makes ``folder/data-bin`` from the text in ``folder/stage``; it appears only when complete and checked.

    Args:
        folder: the output folder.
        stage: folder in it.
        sides: source, target and extra ones, whose files get the same names with another ending.
        dictionaries: of all sides.
        expected: split name -> what the sides must hold.
        joint: source and target use the source's dictionary.
        workers: processes.

    Raises:
        InputError: fairseq-preprocess failed, or what it wrote is not what the text holds.
    """
    target = folder / DATA_BIN
    partial = partial_path(target)
    shutil.rmtree(partial, ignore_errors=True)
    largest = max(side.tokens for of_sides in expected.values() for side in of_sides)
    if largest > MOST_TOKENS_FOR_WORKERS:
        logger.info("fairseq-preprocess runs with one worker: the data is too large for its merging of parts")
        workers = 1
    # Relative paths: fairseq takes a comma in a prefix for a separator.
    files = [str(path.relative_to(folder)) for path in dictionaries]
    pair = sides[:2]
    options = ["--source-lang", pair[0], "--target-lang", pair[1], "--srcdict", files[0]]
    options += ["--joined-dictionary"] if joint else ["--tgtdict", files[1]]
    _preprocess(folder, stage, partial.name, options, list(expected), workers)
    for side, dictionary in zip(sides[2:], files[2:]):
        own = partial / side
        options = ["--source-lang", side, "--target-lang", pair[1], "--only-source", "--srcdict", dictionary]
        _preprocess(folder, stage, str(own.relative_to(folder)), options, list(expected), workers)
        (own / f"dict.{side}.txt").rename(partial / f"dict.{side}.txt")
        for split, ending in itertools.product(expected, ("bin", "idx")):
            file = own / f"{split}.{side}-{pair[1]}.{side}.{ending}"
            file.rename(partial / f"{split}.{'-'.join(pair)}.{side}.{ending}")
        shutil.rmtree(own)
    for split, of_sides in expected.items():
        for side, wanted in zip(sides, of_sides):
            _check(partial / f"{split}.{'-'.join(pair)}.{side}", wanted)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _preprocess(
    folder: Path, stage: str, destination: str, options: List[str], splits: Sequence[str], workers: int
) -> None:
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--destdir", destination, "--dataset-impl", "mmap"]
    command += ["--workers", str(workers), *options]
    for kind in ("train", "valid", "test"):
        prefixes = [f"{stage}/{split}" for split in splits if split.rstrip("0123456789") == kind]
        if prefixes:
            command += [f"--{kind}pref", ",".join(prefixes)]
    result = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=end_with_parent
    )
    if result.returncode != 0:
        last = result.stdout.strip().splitlines()[-1:] or ["no output"]
        raise InputError(f"fairseq-preprocess failed ({last[0]}); see {folder / destination / 'preprocess.log'}")


def _check(prefix: Path, wanted: Expected) -> None:
    """Compares one file of the data-bin with its text: items, empty items (documents), tokens, last address."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    dataset = MMapIndexedDataset(str(prefix))
    sizes = dataset.sizes  # a view that must not outlive the dataset
    found = Expected(len(sizes), int((sizes == 1).sum()), int(sizes.sum(dtype="int64")))
    readable = len(dataset[len(dataset) - 1]) == 1
    if found != wanted or not readable:
        raise InputError(
            f"{prefix.name}: fairseq-preprocess wrote {found}, but the text holds {wanted}; run again with --workers 1"
        )
