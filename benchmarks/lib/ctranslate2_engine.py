"""CTranslate2 in a process of its own, so that its environment is its own."""

import json
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping

import numpy as np

from benchmarks.lib.machine import ROOT


class CTranslate2:
    """CTranslate2 in a process of its own.

    Args:
        python: of its environment.
        folder: for the model.
        sentences: what is translated.
        weights: of the stock model, by fairseq's names.
        settings: what :mod:`benchmarks.lib.ctranslate2_worker` reads from ``model.json``.
    """

    def __init__(
        self,
        python: str,
        folder: Path,
        sentences: List[List[str]],
        weights: Mapping[str, np.ndarray],
        settings: Mapping[str, Any],
    ):
        np.savez(folder / "weights.npz", **weights)
        (folder / "source.json").write_text(json.dumps(sentences))
        (folder / "model.json").write_text(json.dumps(settings))
        script = str(ROOT / "benchmarks" / "lib" / "ctranslate2_worker.py")
        self.process = subprocess.Popen(
            [python, script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()["version"]

    def _answer(self) -> Dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("--ctranslate2-python: the process has ended; see its message above")
        return json.loads(line)

    def translate(self, kind: str) -> Dict[str, Any]:
        """Returns the seconds that all sentences take, and their translations in words."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{kind}\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        self.process.communicate()
