r"""Automatic post-editing: a post-edited sentence as edit operations on the machine translation, and back.

An operation is one token: ``<keep>`` copies the next token of the translation, ``<delete>`` skips it, every other
token is inserted. Operations and their order follow Libovický et al. (2016), as in [L] sec. 4.2: insertions and
deletions cost one each; where words are replaced, insertions come first.

A word that looks like an operation is inserted with a leading backslash, ``\<keep>``, and one that looks like that with
one more, so that any two token sequences can be restored and every token sequence is a valid sequence of operations.
"""

import re
from typing import List, Sequence

from docnmt_fairseq.boundaries import is_boundary

KEEP, DELETE = "<keep>", "<delete>"
OPERATIONS = (KEEP, DELETE)
_ESCAPED = re.compile(r"\\+<(keep|delete)>")


def edit_operations(translation: Sequence[str], edited: Sequence[str]) -> List[str]:
    """Returns the fewest insertions and deletions, with the kept tokens, that turn one sequence into the other.

    This is an alignment along a longest common subsequence, which ``difflib`` does not guarantee; the edit distance of
    TER has substitutions, which are two operations here.
    """
    common = _common_lengths(translation, edited)
    operations: List[str] = []
    i, j = len(translation), len(edited)
    while i and j:  # from the end: resolves ties like the published implementation
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
    """Returns the post-edited tokens.

    Operations beyond the end of the translation have no effect; tokens that no operation reached are kept, as in
    Libovický et al.
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
    """Returns the operations of two lines of tokens separated by spaces; a common boundary is unchanged."""
    if translation == edited and is_boundary(edited):
        return edited
    return " ".join(edit_operations(translation.split(), edited.split()))


def edited_line(translation: str, operations: str) -> str:
    """Returns the line of post-edited text: the inverse of :func:`operations_line`."""
    if translation == operations and is_boundary(operations):
        return operations
    return " ".join(apply_operations(translation.split(), operations.split()))


def _insertion(token: str) -> str:
    return f"\\{token}" if token in OPERATIONS or _ESCAPED.fullmatch(token) else token


def _common_lengths(first: Sequence[str], second: Sequence[str]) -> List[List[int]]:
    """Returns the lengths of the longest common subsequences of all prefixes, [len(first) + 1][len(second) + 1]."""
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
