"""Where an output of ``docnmt prepare`` is, and the data-bin in it, from what a user names."""

from pathlib import Path
from typing import Any, Dict, Optional

from docnmt_fairseq.corpus.binarise import DATA_BIN
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.reusing import MANIFEST
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json

CHECKPOINT = "checkpoint.pt"  # of a model that docnmt import made such a folder of
IMPORTED = "imported"  # what the manifest says about it


def imported_from(folder: PathLike) -> Optional[Dict[str, Any]]:
    """What the manifest of a folder says about the released model that it was imported from; None: it was not."""
    content = parse_json((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
    about: Optional[Dict[str, Any]] = content.get(IMPORTED)
    return about


def is_prepared(folder: Path) -> bool:
    """Whether a folder is a finished output of ``docnmt prepare``; a data-bin alone is none."""
    return (folder / MANIFEST).is_file()


def prepared_folder(data: Path) -> Path:
    """The output of ``docnmt prepare`` that ``data`` is, or is the data-bin of; ``data`` where it is neither."""
    return next((folder for folder in (data, data.parent) if is_prepared(folder)), data)


def data_bin(data: Path) -> Path:
    """The folder with the dictionaries: ``data`` itself, or the one that ``docnmt prepare`` made in it.

    Raises:
        InputError: there is no dictionary.
    """
    inner = data / DATA_BIN
    found = inner if inner.is_dir() else data
    if not any(found.glob("dict.*.txt")):
        raise InputError(
            f"--data {data}: holds no dict.*.txt; give a data-bin, or the folder that docnmt prepare wrote"
        )
    return found
