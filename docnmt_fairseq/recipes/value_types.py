"""Whether what was read from a file is of the types that a dataclass declares: :func:`check_types`."""

from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from docnmt_fairseq.errors import InputError

NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
SEVERAL = {"a text": "texts", "a whole number": "whole numbers", "a number": "numbers"}


def check_types(made: object, where: str) -> None:
    """Compares the values of a dataclass with their types.

    Args:
        made: of values that were read.
        where: the file and the key, for messages.

    Raises:
        InputError: one is of another type; names it.
    """
    for name, hint in get_type_hints(type(made)).items():
        value = getattr(made, name)
        if not _fits(value, hint):
            advice = "; text that YAML takes for something else needs quotes" if _is_unquoted(value, hint) else ""
            raise InputError(f"{where}: {name}: expected {_told(hint)}, got {value!r}{advice}")


def _fits(value: Any, hint: Any) -> bool:
    kind, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if kind is Union:
        return any(_fits(value, one) for one in inside)
    if kind in (list, Sequence):
        return isinstance(value, (list, tuple)) and all(_fits(one, inside[0]) for one in value)
    if kind in (dict, Mapping):
        return isinstance(value, Mapping) and all(_fits(one, inside[1]) for one in value.values())
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def _is_unquoted(value: Any, hint: Any) -> bool:
    """Whether a text is wanted, and there is a number, or what YAML takes for a truth: ``no``."""
    return _fits("", hint) and isinstance(value, (bool, int, float))


def _told(hint: Any) -> str:
    kind, inside = get_origin(hint), get_args(hint)
    if kind is Union:
        return _told(inside[0])  # those of others are not wanted in files
    if kind in (list, Sequence):
        each = _told(inside[0]).replace("a list", "lists")
        return f"a list of {SEVERAL.get(each, each)}"
    return "keys and values" if kind in (dict, Mapping) else NAMES.get(hint, "keys and values")
