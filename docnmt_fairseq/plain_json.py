"""JSON from files that anybody may have written, and to files, with names of files that are no UTF-8."""

import json
from typing import Any, Union


def parse_json(text: Union[str, bytes]) -> Any:
    """What JSON says.

    Raises:
        ValueError: it is none, or is nested too deeply to be read; Python's own function raises RecursionError then.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_bytes(value: Any, **settings: Any) -> bytes:
    """A value as lines of a JSON file, in UTF-8; what has no UTF-8 is escaped.

    Args:
        value: of strings, numbers, lists and dictionaries.
        settings: of ``json.dumps``.
    """
    return (json.dumps(value, ensure_ascii=False, **settings) + "\n").encode("utf-8", "backslashreplace")
