"""The JSON of test sets; what is missing or of another kind is named with its item and field."""

from pathlib import Path
from typing import Any, List, Mapping, Type, TypeVar, Union

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json

T = TypeVar("T")
KINDS = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


def read_json(path: Path, kind: Type[T]) -> T:
    """Reads what a JSON file holds.

    Raises:
        InputError: it cannot be read, is not JSON, empty, or not of this kind.
    """
    text = "\n".join(read_lines(path))
    try:
        content = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, kind) or not content:
        raise InputError(f"{path}: expected {KINDS[kind]} of items")
    return content


def get(entry: Any, name: Union[str, int], kind: Type[T], where: str) -> T:
    """A field of an entry, or an element of a list.

    Args:
        entry: of the JSON.
        name: of the field, or number of the element.
        kind: of the value.
        where: the entry is, for messages.

    Raises:
        InputError: it is missing, or something else.
    """
    known = isinstance(entry, (Mapping, list))
    if not known or (isinstance(entry, Mapping) and name not in entry):
        raise InputError(f"{where}: field '{name}' is missing")
    if isinstance(entry, list) and not (isinstance(name, int) and 0 <= name < len(entry)):
        raise InputError(f"{where}: has no element {name}")
    value = entry[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{where}: field '{name}' is {value!r}, expected {KINDS[kind]}")
    if isinstance(value, str) and not value.strip():
        raise InputError(f"{where}: field '{name}' is empty")
    return value


def texts(entry: Any, name: Union[str, int], where: str, count: int = 0) -> List[str]:
    """A field that is a list of sentences, of ``count`` if that is given."""
    values = get(entry, name, list, where)
    if count and len(values) != count:
        raise InputError(f"{where}: field '{name}' has {len(values)} elements, expected {count}")
    return [get(values, number, str, f"{where}, field '{name}'") for number in range(len(values))]
