"""What is damaged: files of a form, and how they are read to their end."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List

LINES = ["the cat sat 1 2 .", "a dog saw it there .", "", "she & he met < 3 times .", "they left .", ""]


@dataclass
class Subject:
    """A form of file.

    Attributes:
        damaged: the files that are damaged, one at a time.
        read: reads what is in the folder to its end.
        contents: of those files, whole.
    """

    damaged: List[Path]
    read: Callable[[Path], Any]
    contents: Dict[Path, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.contents = {path: path.read_bytes() for path in self.damaged}


def written(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def small_text(folder: Path, suffix: str = "") -> List[Path]:
    lines = "\n".join(LINES) + "\n"
    return [written(folder / f"text.{side}{suffix}", made) for side, made in (("en", lines), ("de", lines.upper()))]
