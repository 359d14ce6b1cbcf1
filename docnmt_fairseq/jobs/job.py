"""One part of some work."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Tuple

NAME = re.compile(r"[\w=-][\w.=-]*")  # it becomes file names


@dataclass(frozen=True)
class Job:
    """A ``docnmt`` command.

    Attributes:
        name: unlike that of other jobs of the same work; letters, digits and ``._=-``.
        arguments: of ``docnmt``.
        done: a file or folder that exists when the result is whole, and not before.

    Raises:
        ValueError: the name cannot be one of a file.
    """

    name: str
    arguments: Tuple[str, ...]
    done: Path

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r}: names of jobs are of letters, digits and ._=-")

    def to_json(self) -> Dict[str, Any]:
        """It as plain values."""
        return {"name": self.name, "arguments": list(self.arguments), "done": str(self.done)}

    @classmethod
    def from_json(cls, values: Dict[str, Any]) -> "Job":
        """The job of plain values."""
        return cls(values["name"], tuple(values["arguments"]), Path(values["done"]))
