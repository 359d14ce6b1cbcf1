"""Cache of the steps of a command: a step is skipped if its inputs and outputs are unchanged since its last run."""

import logging
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence

from docnmt_fairseq import __version__
from docnmt_fairseq.files import fingerprint, identity, read_json, write_json

logger = logging.getLogger(__name__)


class Step(NamedTuple):
    """A finished step: digest of everything it was made from, and the values that its action returned."""

    digest: str
    values: Dict[str, Any]


class StepCache:
    """Runs steps that write files of one folder and records each in a stamp in ``.stamps``.

    Args:
        folder: output folder of the steps.
        summary: file written after the last step; removed as soon as any step is rerun.
    """

    def __init__(self, folder: Path, summary: Path) -> None:
        self.folder = folder
        self.summary = summary

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        outputs: Sequence[Path],
        action: Callable[[], Optional[Dict[str, Any]]],
    ) -> Step:
        """Returns the step, running it if it is not cached.

        Args:
            name: name of the step.
            inputs: everything the outputs depend on, as JSON values: options, digests of files and earlier steps.
            outputs: files or folders that the action writes. Files that others add to such a folder are ignored.
            action: does the work and returns values to record, as JSON values.
        """
        cached = self._cached(name, inputs, outputs)
        if cached is not None:
            logger.info(f"{name}: up to date, skipped")
            return cached
        logger.info(f"{name}: running")
        stamp = self.stamp(name)
        self.summary.unlink(missing_ok=True)
        stamp.unlink(missing_ok=True)
        step = Step(_digest(name, inputs), action() or {})
        write_json(stamp, {**step._asdict(), "outputs": self._state(outputs)}, indent=1)
        return step

    def _cached(self, name: str, inputs: Mapping[str, Any], outputs: Sequence[Path]) -> Optional[Step]:
        """Returns the step if it was run with the same inputs and its outputs are unchanged, None otherwise."""
        stamp, state = read_json(self.stamp(name)) or {}, self._state(outputs)
        if stamp.get("digest") != _digest(name, inputs):
            return None
        files = {str(path.relative_to(self.folder)) for path in outputs if not path.is_dir()}
        unchanged = all(state.get(file) == recorded for file, recorded in stamp["outputs"].items())
        return Step(stamp["digest"], stamp["values"]) if unchanged and files <= stamp["outputs"].keys() else None

    def stamp(self, name: str) -> Path:
        """Path of the stamp of a step."""
        return self.folder / ".stamps" / (name.replace("/", ".") + ".json")

    def _state(self, outputs: Sequence[Path]) -> Dict[str, Any]:
        """Size and modification time of every output file by its path in the folder; None for missing files."""
        files = (path for output in outputs for path in (sorted(output.rglob("*")) if output.is_dir() else [output]))
        return {str(path.relative_to(self.folder)): None if path.is_dir() else identity(path) for path in files}


def _digest(name: str, inputs: Mapping[str, Any]) -> str:
    return fingerprint({"inputs": inputs, "name": name, "docnmt": __version__})
