"""Steps that are done once: a stamp says from what a step was made and what it wrote."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from docnmt_fairseq import __version__
from docnmt_fairseq.corpus.files import PathLike, atomic_write_bytes, refuse_streams
from docnmt_fairseq.plain_json import parse_json

SUM = "sum"  # of the rest of a stamp

logger = logging.getLogger(__name__)


class Step(NamedTuple):
    """A finished step: ``digest`` stands for everything it was made from, ``values`` is what it returned."""

    digest: str
    values: Dict[str, Any]


class Steps:
    """Runs the steps of one output folder, skipping those whose stamp still holds."""

    def __init__(self, folder: Path, summary: Path) -> None:
        """Sets up.

        Args:
            folder: where the steps write; stamps are in its ``.stamps``.
            summary: a file written after the last step; removed as soon as a step is redone.
        """
        self.folder = folder
        self.summary = summary

    def run(
        self,
        name: str,
        inputs: Mapping[str, Any],
        outputs: Sequence[Path],
        action: Callable[[], Optional[Dict[str, Any]]],
    ) -> Step:
        """The step, run now unless its stamp says that it was run from the same inputs.

        Args:
            name: of the step.
            inputs: everything the outputs depend on, as JSON values: options, digests of files and earlier steps.
            outputs: files or folders that the action writes; changed or missing ones cause a new run. What others
                put into a folder since (vectors, features) is left alone; files that a former run wrote elsewhere are
                removed.
            action: does the work, returns values to remember.
        """
        known = self.known(name, inputs, outputs)
        if known is not None:
            logger.info(f"{name}: done before, skipped")
            return known
        stamp, digest = self.stamp(name), _digest_of(name, inputs)
        former = _read_stamp(stamp)
        self.summary.unlink(missing_ok=True)
        stamp.unlink(missing_ok=True)
        logger.info(f"{name}: running")
        values = action() or {}
        content = {"digest": digest, "outputs": self._state(outputs), "values": values}
        self._remove_former(former["outputs"] if former else {}, outputs)
        content[SUM] = _sum(content)
        atomic_write_bytes(stamp, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())
        return Step(digest, values)

    def known(self, name: str, inputs: Mapping[str, Any], outputs: Sequence[Path]) -> Optional[Step]:
        """The step if its stamp says that it was run from the same inputs, and its outputs are as it left them.

        Args:
            name, inputs, outputs: see :meth:`run`.
        """
        stamp, digest = _read_stamp(self.stamp(name)), _digest_of(name, inputs)
        if stamp is not None and stamp["digest"] == digest and self._holds(stamp["outputs"], outputs):
            return Step(digest, stamp["values"])
        return None

    def _remove_former(self, former: Mapping[str, List[int]], outputs: Sequence[Path]) -> None:
        """Removes files that the step wrote before and now does not, such as those of a side that is left out."""
        for name in former:
            path = self.folder / name
            ours = path.is_file() and self._state([path])[name] == former[name]
            if ours and not any(output in (path, *path.parents) for output in outputs):
                path.unlink()

    def stamp(self, name: str) -> Path:
        """The file that is written when a step is done."""
        return self.folder / ".stamps" / (name.replace("/", ".") + ".json")

    def _holds(self, written: Mapping[str, List[int]], outputs: Sequence[Path]) -> bool:
        """Whether everything that was written is still there as it was."""
        now = self._state(outputs)
        unknown = [path for path in outputs if not path.is_dir() and str(path.relative_to(self.folder)) not in written]
        return not unknown and all(now.get(name) == state for name, state in written.items())

    def _state(self, outputs: Sequence[Path]) -> Dict[str, List[int]]:
        """Size and time of change of every file there, by its name relative to the folder."""
        state: Dict[str, List[int]] = {}
        for output in outputs:
            for path in sorted(output.rglob("*")) if output.is_dir() else [output]:
                if path.is_file():
                    status = path.stat()
                    state[str(path.relative_to(self.folder))] = [status.st_size, status.st_mtime_ns]
                else:
                    state[str(path.relative_to(self.folder))] = []
        return state


def _digest_of(name: str, inputs: Mapping[str, Any]) -> str:
    value = {"inputs": inputs, "name": name, "docnmt": __version__}
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _sum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _read_stamp(path: Path) -> Optional[Dict[str, Any]]:
    """What a stamp says; None: there is none, or it is damaged."""
    try:
        content = dict(parse_json(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    total = content.pop(SUM, None)  # stamps from before there were sums have none
    kinds = {"digest": str, "outputs": dict, "values": dict}
    whole = all(isinstance(content.get(name), kind) for name, kind in kinds.items())
    return content if whole and total in (None, _sum(content)) else None


def sha256(path: PathLike) -> str:
    """The SHA-256 of a file's content; of a folder's, the names and digests of its files.

    Raises:
        InputError: it is a pipe, of which nobody could read again what was hashed.
    """
    refuse_streams(path)
    digest = hashlib.sha256()
    if Path(path).is_dir():
        for file in sorted(file for file in Path(path).rglob("*") if file.is_file()):
            digest.update(f"{file.relative_to(path)}\n{sha256(file)}\n".encode())
        return digest.hexdigest()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
