"""The folder of some work: logs, and what became of each job, written where the job runs and read where it is awaited.

Below the folder, ``jobs.json`` is the manifest, ``logs/NAME.log`` what a job printed in all its tries, and
``records/NAME.json`` its record. Machines that share the work share the folder.
"""

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, Sequence, Tuple

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.plain_json import json_bytes, parse_json

DOCNMT = (sys.executable, "-m", "docnmt_fairseq")
WAITING, RUNNING, FAILED, DONE = "waiting", "running", "failed", "done"


@dataclass
class Record:
    """What became of a job.

    Attributes:
        state: ``waiting``, ``running``, ``failed`` or ``done``.
        tries: that were begun, those of earlier runs among them.
        seconds: that the last try took.
        host: that the last try ran on.
        message: why it failed; the end of its log.
    """

    state: str = WAITING
    tries: int = 0
    seconds: float = 0.0
    host: str = ""
    message: str = ""


@dataclass(frozen=True)
class Workplace:
    """Where and how jobs run.

    Attributes:
        folder: of manifest, logs and records; absolute.
        directory: the working directory of jobs; absolute.
        program: that jobs' arguments are given to.
    """

    folder: Path
    directory: Path = field(default_factory=Path.cwd)
    program: Tuple[str, ...] = DOCNMT

    @property
    def manifest(self) -> Path:
        """The file that tells of all jobs."""
        return self.folder / "jobs.json"

    def log(self, job: Job) -> Path:
        """The file that takes what a job prints."""
        return self.folder / "logs" / f"{job.name}.log"

    def is_done(self, job: Job) -> bool:
        """Whether its result is whole."""
        return (self.directory / job.done).exists()

    def read(self, job: Job) -> Record:
        """The record of a job; one of nothing, if nothing became of it yet."""
        try:
            return Record(**parse_json(self._record(job).read_bytes()))
        except (OSError, ValueError, TypeError):
            return Record()

    def write(self, job: Job, record: Record) -> None:
        """Writes the record of a job."""
        atomic_write_bytes(self._record(job), json_bytes(asdict(record), indent=1))

    def write_manifest(self, jobs: Sequence[Job], records: Dict[str, Record]) -> None:
        """Writes what became of all jobs."""
        told = {job.name: {**asdict(records[job.name]), **job.to_json(), "log": str(self.log(job))} for job in jobs}
        atomic_write_bytes(self.manifest, json_bytes({"directory": str(self.directory), "jobs": told}, indent=1))

    def to_json(self) -> Dict[str, Any]:
        """It as plain values."""
        return {"folder": str(self.folder), "directory": str(self.directory), "program": list(self.program)}

    @classmethod
    def from_json(cls, values: Dict[str, Any]) -> "Workplace":
        """The one of plain values."""
        return cls(Path(values["folder"]), Path(values["directory"]), tuple(values["program"]))

    def _record(self, job: Job) -> Path:
        return self.folder / "records" / f"{job.name}.json"
