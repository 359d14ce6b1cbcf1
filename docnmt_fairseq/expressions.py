"""Options of fairseq that are Python expressions, such as ``--adam-betas '(0.9, 0.98)'``: computed, never executed.

fairseq gives such options to ``eval``, also those that it finds in a checkpoint: a file of plain tensors and strings
could so run anything. What such options are for are literals, and lists put together, ``[(512, 3)] * 20``.
"""

import ast
import operator
import sys
from typing import Any, Callable, Dict, Type

from docnmt_fairseq.errors import InputError

OPERATIONS: Dict[Type[ast.operator], Callable[[Any, Any], Any]] = {ast.Add: operator.add, ast.Mult: operator.mul}
LONGEST = 10_000  # entries of a list, characters of a text
SHOWN = 60  # characters of what is refused


class NoPlainValue(InputError):
    """An option that is more than a value."""


def evaluate(expression: Any) -> Any:
    """The value of an expression of literals, ``+`` and ``*``, in the place of ``eval``.

    Raises:
        NoPlainValue: it is something else, or becomes too long.
        TypeError: no text, as ``eval`` says it; fairseq counts on that.
    """
    if not isinstance(expression, str):
        raise TypeError(f"{expression!r} is no text")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        shown = expression if len(expression) <= SHOWN else f"{expression[:SHOWN]}…"
        raise NoPlainValue(
            f"refused: an option is {shown!r}, where fairseq wants a plain value (numbers, texts, lists of them); as "
            "Python it could execute something"
        ) from None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.List):
        return [_value(entry) for entry in node.elts]
    if isinstance(node, ast.Tuple):
        return tuple(_value(entry) for entry in node.elts)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        left, right = _value(node.left), _value(node.right)
        for some, times in ((left, right), (right, left)):
            if isinstance(node.op, ast.Mult) and hasattr(some, "__len__") and len(some) * times > LONGEST:
                raise ValueError("too long")
        return OPERATIONS[type(node.op)](left, right)
    return ast.literal_eval(node)


def patch_fairseq() -> None:
    """Gives all modules of fairseq, which are imported together, this ``eval``."""
    import fairseq  # noqa: F401  (which imports them)

    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq."):
            vars(module)["eval"] = evaluate
