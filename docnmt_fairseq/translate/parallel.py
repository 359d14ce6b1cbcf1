"""Parallel translation: each worker translates a shard, and the parts of a single output file are joined.

Workers are processes of this machine, or tasks of a Ray cluster, which retries them.
"""

import logging
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from docnmt_fairseq.errors import InputError, needs_extra
from docnmt_fairseq.files import atomic_paths, partial_path, read_json, write_json
from docnmt_fairseq.options import CheckedOptions, Choices, option
from docnmt_fairseq.translate.inputs import Request, Shard, check_existing
from docnmt_fairseq.translate.writers import check_unchanged, journal_path, scores_path

ENGINES = Choices(("processes", "ray"))
CUDA = "CUDA_VISIBLE_DEVICES"
CONNECT_TIMEOUT = 10.0  # seconds; Ray itself waits minutes for a cluster

logger = logging.getLogger(__name__)

Submit = Callable[[Sequence[str], Path], "Future[None]"]  # arguments of docnmt, log file


@dataclass(frozen=True)
class JobOptions(CheckedOptions):
    """Options of parallel execution."""

    engine: str = option("processes", "runs the workers: on this machine, or as tasks of a Ray cluster", names=ENGINES)
    workers: int = option(1, "number of parallel workers", minimum=1)
    job_threads: Optional[int] = option(None, "CPU threads per worker (default: all, shared evenly; Ray: 1)", minimum=1)
    job_gpus: int = option(0, "GPUs reserved for each worker", minimum=0)
    max_retries: int = option(3, "Ray: retries of a failed worker", minimum=0)
    ray_address: Optional[str] = option(
        None, "Ray cluster: auto, HOST:6379 or ray://HOST:10001 (default: RAY_ADDRESS, or this machine)"
    )


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
    shards = [Shard(number, options.workers) for number in range(1, options.workers + 1)]
    pairs = replace(request, shard=shards[0]).pairs
    assert request.output is not None  # checked by pairs
    target = pairs[0][1]
    parts = [] if request.is_folder else [shard.output(target) for shard in shards]
    check_existing([target for _, target in pairs], request)
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
    for name in commands:
        logger.info(f"{name}: {_last_line(logs / f'{name}.log')}")
    if parts:
        _join(target, parts)
        journal_path(target).unlink(missing_ok=True)
    shutil.rmtree(logs, ignore_errors=True)


def _check_journal(target: Path, parts: Sequence[Path], fingerprint: str, request: Request) -> None:
    """Writes the journal of parallel work, or compares it with that of interrupted work."""
    journal, content = journal_path(target), {"fingerprint": fingerprint, "workers": len(parts)}
    started = [path for path in (journal, *parts) if path.exists()]
    if started:
        check_existing(started, request)
        check_unchanged(target, read_json(journal), content)
    else:
        write_json(journal, content)


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


# --- Workers ---


def run_commands(commands: Mapping[str, Sequence[str]], options: JobOptions, logs: Path) -> None:
    """Runs commands in parallel; when one fails, the others continue.

    Args:
        commands: arguments of ``docnmt`` by name, at most one per worker.
        options: number and place of the workers.
        logs: folder for a log file ``NAME.log`` per command.

    Raises:
        InputError: commands failed; lists them with the last line of their logs.
    """
    from tqdm import tqdm

    logs.mkdir(parents=True, exist_ok=True)
    failures: List[str] = []
    workers = _ray_tasks if options.engine == "ray" else _processes
    with workers(options) as submit, tqdm(total=len(commands), unit=" jobs", disable=None) as progress:
        names = {submit(arguments, logs / f"{name}.log"): name for name, arguments in commands.items()}
        for future in as_completed(names):
            log = logs / f"{names[future]}.log"
            if future.exception() is not None:
                logger.info(f"{names[future]} failed")
                failures.append(f"{names[future]}: {_last_line(log)} ({log})")
            progress.update()
    if failures:
        listed = "\n  ".join(failures)
        raise InputError(f"{len(failures)} of {len(commands)} workers failed; --resume continues\n  {listed}")


@contextmanager
def _processes(options: JobOptions) -> Iterator[Submit]:
    """Yields a function that runs a command in a process of this machine."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = {"OMP_NUM_THREADS": str(options.job_threads or max(processors // options.workers, 1))}
    gpus = iter(_gpu_environments(options))
    with ThreadPoolExecutor(options.workers) as pool:
        try:
            yield lambda arguments, log: pool.submit(_run, arguments, log, {**threads, **next(gpus)})
        finally:  # after Ctrl-C, which the terminal sends to the running processes, too, no others start
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _ray_tasks(options: JobOptions) -> Iterator[Submit]:
    """Yields a function that runs a command as a task of Ray."""
    with needs_extra("ray", "--engine ray"):
        import ray
    address, threads = options.ray_address, options.job_threads or 1
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
    local: Dict[str, Any] = {} if address else {"include_dashboard": False}
    ray.init(address=address, logging_level=logging.WARNING, log_to_driver=False, **local)
    resources: Dict[str, Any] = {"num_cpus": threads, "num_gpus": options.job_gpus}
    resources.update(max_retries=options.max_retries, retry_exceptions=[subprocess.CalledProcessError])
    task: Any = ray.remote(**resources)(_run)
    try:
        environment, directory = {"OMP_NUM_THREADS": str(threads)}, str(Path.cwd())
        yield lambda arguments, log: task.remote(arguments, log.absolute(), environment, directory).future()
    finally:
        ray.shutdown()


def _run(arguments: Sequence[str], log: Path, environment: Mapping[str, str], directory: Optional[str] = None) -> None:
    """Runs ``docnmt`` with its output appended to a log; ``CalledProcessError`` if it fails."""
    command = [sys.executable, "-m", "docnmt_fairseq", *arguments]
    with open(log, "ab") as stream:
        subprocess.run(
            command, cwd=directory, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=stream,
            stderr=stream, check=True,
        )  # fmt: skip


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _gpu_environments(options: JobOptions) -> List[Dict[str, str]]:
    """Returns the environment of each worker, which assigns its GPUs.

    Raises:
        InputError: the machine has fewer GPUs.
    """
    if not options.job_gpus:
        return [{} for _ in range(options.workers)]
    if CUDA in os.environ:
        devices = [name for name in os.environ[CUDA].split(",") if name]
    else:
        import torch

        devices = list(map(str, range(torch.cuda.device_count())))
    if options.job_gpus * options.workers > len(devices):
        raise InputError(f"--workers {options.workers} --job-gpus {options.job_gpus}: only {len(devices)} GPUs found")
    return [
        {CUDA: ",".join(devices[worker * options.job_gpus : (worker + 1) * options.job_gpus])}
        for worker in range(options.workers)
    ]
