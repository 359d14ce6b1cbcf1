"""The arrays of some work that were submitted to Slurm, as the folder of the work remembers them.

Each is written down before it is submitted, and again when its number is known. Where somebody is killed between the
two, it is found in the queue by the name of its script, which no other has.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import List, Optional, Sequence

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.jobs import slurm_queue
from docnmt_fairseq.jobs.workplace import Workplace
from docnmt_fairseq.plain_json import parse_json


@dataclass
class Array:
    """An array.

    Attributes:
        script: its script.
        names: of the jobs, in the order of the tasks.
        id: Slurm's number; None: it is not submitted, or nobody lived to note that.
    """

    script: str
    names: List[str]
    id: Optional[str] = None


def submit_all(arrays: Sequence[Array], place: Workplace, one_by_one: bool) -> None:
    """Submits arrays, and remembers them.

    Args:
        arrays: which; they get their numbers.
        place: of the work.
        one_by_one: each is to begin when the one before has ended.

    Raises:
        InputError: Slurm refuses one.
    """
    before: Optional[str] = None
    for array in arrays:
        _write(arrays, place)
        array.id = slurm_queue.submit(Path(array.script), before if one_by_one else None)
        before = array.id
    _write(arrays, place)


def submitted(place: Workplace) -> List[Array]:
    """Those that were submitted and not yet seen to end."""
    try:
        arrays = [Array(**values) for values in parse_json(_path(place).read_bytes())]
        known = all(isinstance(name, str) for array in arrays for name in [array.script, *array.names])
    except (OSError, ValueError, TypeError):
        return []
    for array in arrays if known else []:
        array.id = array.id or slurm_queue.number_of(Path(array.script))
    return [array for array in arrays if array.id] if known else []


def forget(place: Workplace) -> None:
    """They have ended."""
    _path(place).unlink(missing_ok=True)


def _write(arrays: Sequence[Array], place: Workplace) -> None:
    atomic_write_bytes(_path(place), (json.dumps(list(map(asdict, arrays)), indent=1) + "\n").encode())


def _path(place: Workplace) -> Path:
    return place.folder / "slurm" / "array.json"
