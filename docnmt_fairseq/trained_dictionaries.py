"""Which dictionaries a model's parameters belong to: tasks keep digests of them in checkpoints.

fairseq compares sizes alone. With another dictionary of the same size, such as that of a second data-bin with as many
subwords, a model would read and write other words than it learnt, and nothing would be said.
"""

import hashlib
from typing import TYPE_CHECKING, Any, List, Sequence

if TYPE_CHECKING:
    from fairseq.data import Dictionary

KEY = "dictionaries"  # in a task's state: digests of source and target


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
    return [side for side, old, new in zip(("source", "target"), known, (now or {}).get(KEY) or ()) if old != new]
