"""Parallel translation: each worker translates a shard, and the parts of a single output file are joined."""

import logging
import shutil
from glob import escape
from pathlib import Path
from typing import Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import atomic_paths, partial_path, read_json, write_json
from docnmt_fairseq.translate.inputs import check_existing
from docnmt_fairseq.translate.jobs import JobOptions, run_commands
from docnmt_fairseq.translate.request import Request, Shard
from docnmt_fairseq.translate.writers import OTHER_INPUTS, journal_path, scores_path

logger = logging.getLogger(__name__)


def translate_in_parallel(request: Request, arguments: Sequence[str], options: JobOptions, fingerprint: str) -> None:
    """Translates with one worker per shard.

    Args:
        request: whole work.
        arguments: of ``docnmt``, without the options that this function adds.
        options: number of workers, at least 2, and where they run.
        fingerprint: of everything that the translations depend on.

    Raises:
        InputError: workers failed; an output exists; interrupted work has another fingerprint.
    """
    pairs = request.pairs()
    assert request.output is not None  # checked by pairs()
    shards = [Shard(number, options.workers) for number in range(1, options.workers + 1)]
    target = pairs[0][1]
    parts = [] if request.is_folder else [shard.output(target) for shard in shards]
    check_existing([target for _, target in pairs if target.exists()], request)
    if request.force:
        for _, existing in pairs:
            _remove(existing, *existing.parent.glob(f"{escape(existing.name)}.shard-*"))
    if parts:
        if target.exists():
            return
        _check_journal(target, parts, fingerprint, request)
    logs = request.output.with_name(f"{request.output.name}.logs")
    commands = {
        f"shard-{shard.number}-of-{shard.of}": [*arguments, "--resume", "--shard", str(shard)] for shard in shards
    }
    run_commands(commands, options, logs)
    if parts:
        _join(target, parts)
        journal_path(target).unlink(missing_ok=True)
    shutil.rmtree(logs, ignore_errors=True)


def _check_journal(target: Path, parts: Sequence[Path], fingerprint: str, request: Request) -> None:
    """Writes the journal of parallel work, or compares it with that of interrupted work."""
    journal, content = journal_path(target), {"fingerprint": fingerprint, "workers": len(parts)}
    if not journal.exists():
        check_existing([part for part in parts if part.exists()], Request([target]))
        write_json(journal, content)
    elif not request.resume:
        raise InputError(f"--output {target}: was interrupted; --resume continues, --force restarts")
    elif read_json(journal) != content:
        raise InputError(f"--resume: {target} {OTHER_INPUTS}, also the same --workers")
    else:
        logger.info(f"{target}: resumes")


def _join(target: Path, parts: Sequence[Path]) -> None:
    """Concatenates the parts of a file, and of its table of scores, and removes them."""
    tables = [scores_path(part) for part in parts if scores_path(part).exists()]
    joined = {target: parts, **({scores_path(target): tables} if tables else {})}
    with atomic_paths(*joined) as partials:
        for partial, own in zip(partials, joined.values()):
            with open(partial, "wb") as stream:
                for part in own:
                    with open(part, "rb") as content:
                        shutil.copyfileobj(content, stream)
    if not tables:
        scores_path(target).unlink(missing_ok=True)
    _remove(*parts)


def _remove(*targets: Path) -> None:
    """Removes files, their tables of scores, and what is left of interrupted work on them."""
    for target in targets:
        for file in (target, scores_path(target)):
            file.unlink(missing_ok=True)
            partial_path(file).unlink(missing_ok=True)
        journal_path(target).unlink(missing_ok=True)
