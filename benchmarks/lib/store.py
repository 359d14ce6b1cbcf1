"""Figures of finished runs, kept from one call of a benchmark to the next."""

import json
from pathlib import Path
from typing import Any, Dict


class Store:
    """Figures of finished runs in a JSON file, written after every one; runs of an earlier call stay."""

    def __init__(self, path: Path):
        self.path = path
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.facts: Dict[str, Any] = known.get("facts", {})
        self.runs: Dict[str, dict] = known.get("runs", {})

    def called(self, command: str) -> None:
        """Keeps a command line of a benchmark, each once."""
        calls = self.facts.setdefault("calls", [])
        if command not in calls:
            calls.append(command)

    def add(self, name: str, run: dict) -> None:
        """Keeps the figures of a run."""
        self.runs[name] = run
        self.save()

    def save(self) -> None:
        """Writes the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"facts": self.facts, "runs": self.runs}, ensure_ascii=False)
        self.path.write_text(text.replace('}, "', '},\n"') + "\n", encoding="utf-8")
