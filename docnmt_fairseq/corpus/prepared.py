"""Outputs of ``docnmt prepare``: their manifest, options, data-bin and languages."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from docnmt_fairseq.corpus.data_bin import DATA_BIN
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint.pt"  # of a model imported by docnmt import
IMPORTED = "imported"  # key of the manifest that describes an imported model


def is_prepared(folder: Path) -> bool:
    """Returns True if a folder is a complete output of ``docnmt prepare``."""
    return (folder / MANIFEST).is_file()


def manifest_options(output: PathLike, option: str) -> Dict[str, Any]:
    """Returns the options of a complete output; ``option`` names the command-line option in errors."""
    try:
        options: Dict[str, Any] = json.loads((Path(output) / MANIFEST).read_text(encoding="utf-8"))["options"]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{option} {output}: not a complete output of docnmt prepare (no {MANIFEST})") from error
    return options


def imported_from(folder: PathLike) -> Optional[Dict[str, Any]]:
    """Returns the description of the released model that a folder was imported from, None for other folders."""
    content = json.loads((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
    about: Optional[Dict[str, Any]] = content.get(IMPORTED)
    return about


def parent_folder(folder: Path) -> Path:
    """Returns the parent of a folder, which may be given as ``.`` or ``..``."""
    return folder.parent if folder.name not in ("", "..") else Path(os.path.abspath(folder)).parent


def prepared_folder(data: Path) -> Path:
    """Returns the output of ``docnmt prepare`` that ``data`` is or is the data-bin of; otherwise ``data``."""
    return next((folder for folder in (data, parent_folder(data)) if is_prepared(folder)), data)


def data_bins(output: PathLike, shards: int) -> List[Path]:
    """Returns the data-bins of an output: ``data-bin`` with all splits, ``data-bin-1``, ... with training text only."""
    return [Path(output) / (f"{DATA_BIN}-{number}" if number else DATA_BIN) for number in range(shards)]


def data_bin(data: Path) -> Path:
    """Returns the folder with the dictionaries: ``data`` itself, or its data-bin."""
    inner = data / DATA_BIN
    return inner if inner.is_dir() else data


def languages_of(folder: Path) -> Tuple[str, str]:
    """Returns source and target language of a data-bin, from the names of its files."""
    dictionaries = {path.name[len("dict.") : -len(".txt")] for path in folder.glob("dict.*.txt")}
    for path in sorted(folder.glob("*")):
        if found := re.fullmatch(r"[^.]+\.([^.]+-[^.]+)\.([^.]+)(?:\.idx)?", path.name):
            codes = found[1].split("-")  # one hyphen divides the pair, others are in codes such as pt-BR
            pairs = [("-".join(codes[:cut]), "-".join(codes[cut:])) for cut in range(1, len(codes))]
            possible = [pair for pair in pairs if found[2] in pair]
            if possible:
                return max(possible, key=lambda pair: len(dictionaries.intersection(pair)))
    instead = f"; give {folder / DATA_BIN}" if (folder / DATA_BIN).is_dir() else ""
    raise InputError(f"{folder}: has no SPLIT.SOURCE-TARGET.SOURCE.idx that names the languages{instead}")
