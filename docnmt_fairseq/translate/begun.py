"""What unfinished work was begun with; it goes on with nothing else, lest parts of two works become one file."""

from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional

from docnmt_fairseq.corpus.binarise import DATA_BIN
from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.corpus.prepared import prepared_folder
from docnmt_fairseq.corpus.reusing import MANIFEST
from docnmt_fairseq.corpus.steps import sha256
from docnmt_fairseq.plain_json import json_bytes, parse_json

Work = Dict[str, Any]  # what it depends on, as JSON values, by what messages call it

NAMED = 3  # differences that a message names


def states(paths: Iterable[Path]) -> Work:
    """Files that are too large to be read for that: size in bytes and time of change in ns; None: not there."""
    return {str(path): _state(path) for path in paths}


def _state(path: Path) -> Optional[List[int]]:
    try:
        status = path.stat()
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns]


def states_of_prepared(data: Path) -> Work:
    """The files with which text is made ready: the SHA-256 of each, as ``docnmt prepare`` may write the same again."""
    folder = prepared_folder(data)
    of_data_bin = chain(*(folder.glob(f"{DATA_BIN}/{files}") for files in ("dict.*.txt", "similar.*.npz")))
    files = [folder / MANIFEST, *folder.glob("models/*"), *of_data_bin]
    return {str(file): sha256(file) for file in sorted(files) if file.is_file()}


def write_work(path: Path, work: Mapping[str, Any]) -> None:
    """Remembers what work is begun with."""
    atomic_write_bytes(path, json_bytes(work, indent=1))


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> List[str]:
    """The names of values that are others, or not there, in one of two works."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def differences(path: Path, work: Mapping[str, Any]) -> Optional[str]:
    """What is another now than when the work was begun; None: nothing.

    Args:
        path: of :func:`write_work`.
        work: what it is to go on with.
    """
    try:
        before = dict(parse_json(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return f"what {path} no longer says"
    names = differing(before, work)
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more if names else None
