"""JSON from files that anybody may have written."""

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
