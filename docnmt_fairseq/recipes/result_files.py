"""Where a model's results are: which file of its folder is of which test set, translated with which context."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.recipes.dataset import TEST


@dataclass(frozen=True)
class ResultFiles:
    """The files of a model on one test set.

    Attributes:
        folder: of the model.
        test_set: its name.
        context: that the model was shown; "": the true one.
    """

    folder: Path
    test_set: str
    context: str = ""

    @property
    def text(self) -> Path:
        """The translation: ``test.txt``, ``unseen.txt``, ``test.shuffled.txt``."""
        return self.folder / ".".join(filter(None, (self.test_set, self.context, "txt")))

    def named(self, name: str) -> Path:
        """Another file: ``scores.json``, ``scores.unseen.json``, ``scores.unseen.shuffled.json``."""
        path = self.folder / name
        return path.with_suffix("".join(f".{part}" for part in self._parts) + path.suffix)

    def step(self, what: str) -> str:
        """What the step is called that does something for these files."""
        return "/".join((what, self.folder.name, *self._parts))

    @property
    def _parts(self) -> List[str]:
        return [part for part in ("" if self.test_set == TEST else self.test_set, self.context) if part]


def read_json(path: Path) -> Any:
    """What a file of results holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, values: Any) -> None:
    """Writes a file of results."""
    atomic_write_bytes(path, (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode())
