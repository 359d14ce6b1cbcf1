"""A translation shared out among jobs of an engine: a shard each, whose parts are put together when all are done.

Beside the output is the folder OUTPUT.jobs with the manifest and the jobs' logs; ``done`` in it has a file for each
shard that is done, and is there for as long as the work is unfinished. ``work.json`` says what it was begun with,
``counts.npz`` how many sentences documents have.
"""

import logging
import shutil
from dataclasses import replace
from glob import escape
from itertools import chain
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from docnmt_fairseq.corpus.files import partial_path
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import Engine, Job, run_jobs
from docnmt_fairseq.jobs.workplace import DOCNMT
from docnmt_fairseq.locks import beside, holding
from docnmt_fairseq.translate.alone import holding_output, side_by_side
from docnmt_fairseq.translate.begun import differences, states, write_work
from docnmt_fairseq.translate.counts import write_counts
from docnmt_fairseq.translate.output import journal_path
from docnmt_fairseq.translate.parts import part_path, table_of
from docnmt_fairseq.translate.request import Request, check_there, pairs_of
from docnmt_fairseq.translate.shards import Shard, owners_of
from docnmt_fairseq.translate.texts import counted

WORK, COUNTS = "work.json", "counts.npz"  # in the folder of the work

logger = logging.getLogger(__name__)


def translate_in_shards(
    request: Request,
    shards: int,
    arguments: Sequence[str],
    engine: Engine,
    *,
    settings: Mapping[str, Any],
    tries: int = 3,
    program: Sequence[str] = DOCNMT,
) -> bool:
    """Translates with as many jobs as there are shards; each goes on where an earlier try of it was interrupted.

    Args:
        request: what is asked for, of all shards; with ``force`` translations that are there are removed first.
        shards: how many.
        arguments: of ``docnmt translate``, without those that say which shard, and what to do about what is there.
        engine: runs the jobs.
        settings: what translations depend on beside the inputs, as JSON values, by what messages call it: options,
            and the states of the model's files.
        tries: how often each is tried.
        program: that runs the arguments.

    Returns:
        Whether all is written; False only where the engine was asked to prepare jobs and not to run any.

    Raises:
        InputError: there is only one shard; jobs failed; work that was begun is neither to be gone on with nor to begin
            anew, or was begun with other inputs, settings or another number of shards; somebody else is at work there;
            see also :func:`~docnmt_fairseq.translate.texts.texts_of`.
    """
    pairs = pairs_of(replace(request, shard=Shard(1, shards)))
    assert request.output is not None  # or there were no pairs
    if shards == 1:
        raise InputError("--engine: runs --shards of 2 or more; say how many, or leave it out")
    folder = request.output.with_name(f"{request.output.name}.jobs")
    work = {"--shards": shards, **settings, **states(source for source, _ in pairs)}
    with holding(beside(folder), f"--output {request.output}"):
        if request.force:
            with holding_output(request):
                shutil.rmtree(folder, ignore_errors=True)
                for _, target in pairs:
                    for there in _there(target):
                        there.unlink()
        with side_by_side(request, shards):
            if _under_way(folder, work, request):
                logger.info(f"{folder}: the work that was begun there goes on")
            else:
                check_there([there for _, target in pairs for there in _there(target)[:1]], request, len(pairs))
                write_work(folder / WORK, work)
                _count(folder / COUNTS, pairs, request)
            done = folder / "done"
            done.mkdir(parents=True, exist_ok=True)
            arguments = [*arguments, "--counts", str(folder / COUNTS)]
            jobs = [_job(done, arguments, number, shards) for number in range(1, shards + 1)]
            complete = run_jobs(jobs, engine, folder, tries=tries, title="shards", program=program)
            if complete:
                _put_together(pairs, replace(request, counts=folder / COUNTS), shards)
                shutil.rmtree(done)
    return complete


def _count(path: Path, pairs: Sequence[Tuple[Path, Path]], request: Request) -> None:
    write_counts(path, [source for source, _ in pairs], [text.sizes or () for text in counted(pairs, request)])


def _job(folder: Path, arguments: Sequence[str], number: int, shards: int) -> Job:
    done = folder / f"{number}-of-{shards}"
    own = ["--resume", "--shards", str(shards), "--shard", str(number), "--done", str(done)]
    return Job(f"shard-{number}-of-{shards}", ("translate", *arguments, *own), done)


def _under_way(folder: Path, work: Dict[str, Any], request: Request) -> bool:
    """Whether this work was begun before.

    Raises:
        InputError: it is not to be gone on with, or was begun with something else.
    """
    if not (folder / "done").is_dir():
        return False
    if not request.resume:
        raise InputError(f"--output {request.output}: was interrupted; --resume goes on, --force begins anew")
    if (other := differences(folder / WORK, work)) is not None:
        raise InputError(
            f"--output {request.output}: was begun with another {other}; give what it was begun with, or begin anew "
            "with --force"
        )
    return True


def _there(target: Path) -> List[Path]:
    """What is there of a translation, whole or in parts, finished or not."""
    whole = [file for path in (target, table_of(target)) for file in (path, partial_path(path), journal_path(path))]
    parts = (target.parent.glob(f"{escape(path.name)}.shard-*-of-*") for path in (target, table_of(target)))
    return [*(file for file in whole if file.exists()), *chain(*parts)]


def _put_together(pairs: Sequence[Tuple[Path, Path]], request: Request, shards: int) -> None:
    """Makes the files that shards, ended at the same moment on different machines, left in parts.

    Raises:
        InputError: parts are missing.
    """
    if all(target.exists() for _, target in pairs):
        return
    texts = counted(pairs, request)
    for text, owners in zip(texts, owners_of([text.sizes or () for text in texts], shards)):
        assert text.target is not None
        parts = [part_path(text.target, number, shards) for number, _, _ in owners]
        replace(text, whole=text.target, parts=parts).finish()
        if not text.target.exists():
            raise InputError(f"{text.target}: is missing although all shards are done; --resume tries again")
