"""Stock fairseq-preprocess over delimited subword text, and the check that nothing was lost on the way."""

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
    languages: Tuple[str, str],
    dictionaries: Tuple[Path, Path],
    expected: Dict[str, Tuple[Expected, Expected]],
    *,
    joint: bool,
    workers: int,
) -> None:
    """Makes ``folder/data-bin`` from the text in ``folder/stage``; it appears only when complete and checked.

    Args:
        folder: the output folder.
        stage: folder in it.
        languages: source, target.
        dictionaries: of source, target.
        expected: split name -> what source and target must hold.
        joint: both languages use the source's dictionary.
        workers: processes.

    Raises:
        InputError: fairseq-preprocess failed, or what it wrote is not what the text holds.
    """
    target = folder / DATA_BIN
    partial = partial_path(target)
    shutil.rmtree(partial, ignore_errors=True)
    largest = max(side.tokens for sides in expected.values() for side in sides)
    if largest > MOST_TOKENS_FOR_WORKERS:
        logger.info("fairseq-preprocess runs with one worker: the data is too large for its merging of parts")
        workers = 1
    # Relative paths: fairseq takes a comma in a prefix for a separator.
    dictionary_files = [str(path.relative_to(folder)) for path in dictionaries]
    _preprocess(folder, stage, partial.name, languages, dictionary_files, list(expected), joint, workers)
    for split, sides in expected.items():
        for language, wanted in zip(languages, sides):
            _check(partial / f"{split}.{languages[0]}-{languages[1]}.{language}", wanted)
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


def _preprocess(
    folder: Path,
    stage: str,
    destination: str,
    languages: Tuple[str, str],
    dictionaries: List[str],
    splits: Sequence[str],
    joint: bool,
    workers: int,
) -> None:
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--destdir", destination, "--dataset-impl", "mmap"]
    command += ["--source-lang", languages[0], "--target-lang", languages[1], "--workers", str(workers)]
    command += ["--srcdict", dictionaries[0]]
    command += ["--joined-dictionary"] if joint else ["--tgtdict", dictionaries[1]]
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
