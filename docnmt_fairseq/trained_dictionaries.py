"""Which dictionaries and languages a model's parameters belong to: tasks keep digests and names in checkpoints.

fairseq compares sizes alone. With another dictionary of the same size, such as that of a second data-bin with as many
subwords, a model would read and write other words than it learnt, and nothing would be said. Nor would it where both
languages share one dictionary and are given the wrong way round.
"""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Sequence

from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from fairseq.data import Dictionary

KEY = "dictionaries"  # in a task's state: digests of source and target
LANGUAGES = ("source_lang", "target_lang")  # there, too
SIDES = ("source", "target")


def digest_of(dictionary: "Dictionary") -> str:
    """SHA-256 of a dictionary's symbols in order, in hexadecimal digits; how often they come does not matter."""
    return hashlib.sha256("\n".join(dictionary.symbols).encode("utf-8")).hexdigest()


def foreign_sides(before: Any, now: Any) -> List[str]:
    """Tells which dictionaries are others than a model was trained with.

    Args:
        before: the task's state in a checkpoint; older ones, and those of fairseq's own tasks, do not say.
        now: the task's state.

    Returns:
        Of ``"source"`` and ``"target"``.
    """
    known: Sequence[str] = (before or {}).get(KEY) or ()
    return [side for side, old, new in zip(SIDES, known, (now or {}).get(KEY) or ()) if old != new]


def check_trained(before: Any, now: Any, folder: Path) -> None:
    """Compares a task with the one that a model was trained for.

    Args:
        before: the latter's state, in a checkpoint.
        now: the task's state.
        folder: its data-bin.

    Raises:
        InputError: the model was trained the other way round, or with other dictionaries, even if of the same size.
    """
    trained, given = ([(state or {}).get(name) for name in LANGUAGES] for state in (before, now))
    if trained[0] != trained[1] and trained == given[::-1]:
        raise InputError(
            f"--source-lang {given[0]} --target-lang {given[1]}: the model translates from {trained[0]} to "
            f"{trained[1]}; give the languages so"
        )
    for side in foreign_sides(before, now):
        raise InputError(
            f"{folder / f'dict.{given[SIDES.index(side)]}.txt'}: the model was trained with another {side} dictionary, "
            "other symbols or in another order; give the data-bin of its training"
        )
