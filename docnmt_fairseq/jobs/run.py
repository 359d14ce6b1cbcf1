"""Runs jobs until all are done, or have failed often enough."""

import logging
from contextlib import closing
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs.engines import Engine
from docnmt_fairseq.jobs.job import Job
from docnmt_fairseq.jobs.workplace import DOCNMT, DONE, FAILED, RUNNING, WAITING, Record, Workplace
from docnmt_fairseq.locks import holding, in_folder

NAMED = 8  # failed jobs that the error names

logger = logging.getLogger(__name__)


def run_jobs(
    jobs: Sequence[Job],
    engine: Engine,
    folder: Path,
    *,
    tries: int = 3,
    title: str = "jobs",
    program: Sequence[str] = DOCNMT,
    patience: Optional[float] = None,
) -> bool:
    """Runs jobs; those that are done already are skipped, and what fails does not keep others from being done.

    Args:
        jobs: what to run, each with a name of its own.
        engine: runs them.
        folder: of the manifest ``jobs.json``, of ``logs`` and ``records``; no two runs are at work in one.
        tries: how often a job is tried at most.
        title: of the progress bar.
        program: that the jobs' arguments are given to; ``docnmt``.
        patience: seconds to wait for the end of what a killed run left at work in the folder; None: the usual ones.

    Returns:
        Whether all are done; False only where the engine was asked to prepare them and not to run any.

    Raises:
        InputError: jobs failed (all of them are named, with the end and the place of their logs); another run is at
            work in the folder; the engine cannot run here.
    """
    from tqdm import tqdm

    names = [job.name for job in jobs]
    if len(set(names)) < len(names):
        raise ValueError(f"jobs with the same name among {', '.join(names)}")
    place = Workplace(folder.absolute(), program=tuple(program))
    with holding(in_folder(folder), str(folder), patience=patience):
        records = {job.name: _known(job, place) for job in jobs}
        waiting = [job for job in jobs if records[job.name].state != DONE]
        if len(waiting) < len(jobs):
            logger.info(f"{title}: {len(jobs) - len(waiting):,} of {len(jobs):,} are done already")
        if not waiting:
            place.write_manifest(jobs, records)
            return True
        place.write_manifest(jobs, records)
        with (
            tqdm(total=len(jobs), initial=len(jobs) - len(waiting), desc=title, unit=" jobs", disable=None) as bar,
            closing(engine.run(waiting, place, tries)) as changed,
        ):
            for job in changed:
                records[job.name] = place.read(job)
                place.write_manifest(jobs, records)
                _show(bar, records)
        if engine.only_prepares:
            return False
        records = {job.name: _ended(job, place) for job in jobs}
        place.write_manifest(jobs, records)
    failed = [job for job in jobs if records[job.name].state == FAILED]
    if failed:
        raise InputError(_failures(failed, len(jobs), records, place))
    return True


def _known(job: Job, place: Workplace) -> Record:
    """What is known of a job before it is run."""
    record = place.read(job)
    record.state = DONE if place.is_done(job) else WAITING
    return record


def _ended(job: Job, place: Workplace) -> Record:
    """What became of a job after all its tries; its result says whether it is done."""
    record = place.read(job)
    if place.is_done(job):
        record.state, record.message = DONE, ""
    else:
        lost = record.state != FAILED  # nothing is left of the process that would have told
        record.state, record.message = FAILED, "its process was lost" if lost else record.message
    return record


def _show(bar: "tqdm[object]", records: Dict[str, Record]) -> None:  # type: ignore[name-defined]  # noqa: F821
    states = [record.state for record in records.values()]
    bar.set_postfix(running=states.count(RUNNING), failed=states.count(FAILED), refresh=False)
    bar.update(states.count(DONE) - bar.n)


def _failures(failed: Sequence[Job], of: int, records: Dict[str, Record], place: Workplace) -> str:
    told: List[str] = []
    for job in failed[:NAMED]:
        told.append(f"{job.name}: {records[job.name].message} ({place.log(job)})")
    more = f"\n  and {len(failed) - NAMED:,} more, see {place.manifest}" if len(failed) > NAMED else ""
    lines = "\n  ".join(told)
    return f"{len(failed):,} of {of:,} jobs failed; the same command tries them again\n  {lines}{more}"
