"""Where an output of ``docnmt prepare`` is, and the data-bin in it, from what a user names."""

import os
import re
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

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


def folder_around(folder: Path) -> Path:
    """The folder that another is in, also where that is given as ``.`` or ``..``, which have no name of their own."""
    return folder.parent if folder.name not in ("", "..") else Path(os.path.abspath(folder)).parent


def prepared_folder(data: Path) -> Path:
    """The output of ``docnmt prepare`` that ``data`` is, or is the data-bin of; ``data`` where it is neither."""
    return next((folder for folder in (data, folder_around(data)) if is_prepared(folder)), data)


def languages_of(folder: Path) -> Tuple[str, str]:
    """Source and target language of a data-bin, by its files of text; what else lies beside them may be called anyhow.

    Raises:
        InputError: no such folder, or there are no such files.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the data-bin that docnmt prepare wrote")
    for path in sorted(folder.iterdir()):
        found = re.fullmatch(r"[^.]+\.([^.-]+)-([^.-]+)\.(?:\1|\2)(?:\.idx)?", path.name)
        if found:
            return found[1], found[2]
    instead = f"; give {folder / DATA_BIN}" if (folder / DATA_BIN).is_dir() else ""
    raise InputError(
        f"--source-lang and --target-lang: not given, and {folder} holds no SPLIT.SOURCE-TARGET.SOURCE.idx that says "
        f"which they are{instead}"
    )


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
