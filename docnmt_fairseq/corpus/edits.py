r"""A post-edited sentence as the edit operations that turn the machine translation into it, and back.

An operation is one token: ``<keep>`` copies the next token of the translation, ``<delete>`` passes over it, and every
other token is inserted as it stands. Operations and their order are those of Libovický et al. (2016), whom [L]
sec. 4.2 follows: an insertion and a deletion cost one each; where words are replaced, insertions come first.

A word that looks like an operation is inserted with a backslash before it, ``\<keep>``; one that looks like that with
one more. So any two sequences of tokens are restored exactly, and any sequence of tokens is a sequence of operations.
"""

import re
from typing import List, Sequence

from docnmt_fairseq.corpus.delimited import parallel_lines
from docnmt_fairseq.corpus.files import PathLike, atomic_files
from docnmt_fairseq.marks import is_mark

KEEP, DELETE = "<keep>", "<delete>"
OPERATIONS = (KEEP, DELETE)
_ESCAPED = re.compile(r"\\+<(keep|delete)>")


def edit_operations(translation: Sequence[str], edited: Sequence[str]) -> List[str]:
    """The fewest insertions and deletions, with what is kept between them, that turn one into the other.

    Keeping costs nothing, so this is an alignment along a longest common subsequence. ``difflib`` does not find one,
    and the edit distance of TER has substitutions, which are two operations here.

    Args:
        translation: tokens of the machine translation.
        edited: tokens of the post-edited sentence.
    """
    common = _common_lengths(translation, edited)
    operations: List[str] = []
    i, j = len(translation), len(edited)
    while i and j:  # from the end: ties are decided as in the published implementation
        if translation[i - 1] == edited[j - 1]:
            operations.append(KEEP)
            i, j = i - 1, j - 1
        elif common[i - 1][j] >= common[i][j - 1]:
            operations.append(DELETE)
            i -= 1
        else:
            operations.append(_insertion(edited[j - 1]))
            j -= 1
    operations += [DELETE] * i + [_insertion(token) for token in reversed(edited[:j])]
    return operations[::-1]


def apply_operations(translation: Sequence[str], operations: Sequence[str]) -> List[str]:
    """The post-edited tokens, whatever a model wrote: there is no wrong sequence of operations.

    Keeping and deleting beyond the end of the translation does nothing; what no operation reached is kept, since a
    model that stops early has found nothing more to change (Libovický et al. do the same).

    Args:
        translation: tokens of the machine translation.
        operations: as of :func:`edit_operations`, or a model's.
    """
    edited: List[str] = []
    reached = 0
    for operation in operations:
        if operation == KEEP:
            edited += translation[reached : reached + 1]
        elif operation != DELETE:
            edited.append(operation[1:] if _ESCAPED.fullmatch(operation) else operation)
        reached += operation in OPERATIONS
    return [*edited, *translation[reached:]]


def operations_line(translation: str, edited: str) -> str:
    """A line of operations for a line of each text, tokens with spaces between; a common mark stays a mark."""
    if translation == edited and is_mark(edited):
        return edited
    return " ".join(edit_operations(translation.split(), edited.split()))


def edited_line(translation: str, operations: str) -> str:
    """The line of post-edited text: the reverse of :func:`operations_line`."""
    if translation == operations and is_mark(operations):
        return operations
    return " ".join(apply_operations(translation.split(), operations.split()))


def write_operations(translation: PathLike, edited: PathLike, output: PathLike) -> None:
    """Writes the operations of two delimited files.

    Raises:
        InputError: one file ends before the other.
    """
    with atomic_files(output) as (stream,):
        for _, (before, after) in parallel_lines([translation, edited]):
            stream.write(f"{operations_line(before, after)}\n")


def _insertion(token: str) -> str:
    return f"\\{token}" if token in OPERATIONS or _ESCAPED.fullmatch(token) else token


def _common_lengths(first: Sequence[str], second: Sequence[str]) -> List[List[int]]:
    """The lengths of the longest common subsequences of all prefixes, [len(first) + 1][len(second) + 1]."""
    rows = [[0] * (len(second) + 1)]
    for token in first:
        above, row, longest = rows[-1], [0], 0
        for j, other in enumerate(second):
            if token == other:
                longest = above[j] + 1
            elif above[j + 1] > longest:
                longest = above[j + 1]
            row.append(longest)
        rows.append(row)
    return rows
