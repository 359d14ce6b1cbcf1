"""``fairseq-generate`` shared out among jobs of an engine; what they print is put together as one process prints it."""

import heapq
import logging
import shutil
from operator import attrgetter
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

import torch
from fairseq import scoring, tasks, utils

from docnmt_fairseq.checkpoints import check_file
from docnmt_fairseq.corpus.files import FilesByTurns, atomic_files
from docnmt_fairseq.corpus.prepared import folder_around
from docnmt_fairseq.data.kept_index import is_index
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.jobs import Engine, Job, run_jobs
from docnmt_fairseq.locks import beside, holding
from docnmt_fairseq.translate.begun import differences, states, write_work
from docnmt_fairseq.translate.generated_share import configuration, read_share
from docnmt_fairseq.translate.shards import Shard

WORK = "work.json"  # in the folder of shares

logger = logging.getLogger(__name__)


def generate(arguments: Sequence[str], shards: int, engine: Engine, tries: int = 3) -> Path:
    """Translates a data-bin's split with as many jobs as there are shares.

    Beside the output is the folder OUTPUT.jobs with manifest and logs; given again, the command goes on with the shares
    that are not done; with another model, data-bin or command line it begins anew.

    Args:
        arguments: of fairseq-generate.
        shards: how many shares.
        engine: runs the jobs.
        tries: how often each is tried.

    Returns:
        The file with what one process would have printed, its log messages left out.

    Raises:
        InputError: jobs failed; somebody else is at work there; an option is missing, or gives each process other
            translations.
    """
    Shard(1, shards)
    cfg = configuration(arguments)
    _check(cfg)
    output = Path(cfg.common_eval.results_path) / f"generate-{cfg.dataset.gen_subset}.txt"
    folder = output.with_name(f"{output.name}.jobs")
    shares = folder / "shares"
    with holding(beside(output), f"--results-path {output.parent}"):
        read = [*_models(cfg.common_eval.path), *_data(cfg.task.data, cfg.dataset.gen_subset)]
        _begin(shares, {"arguments": list(arguments), "shards": shards, **states(read)})
        jobs = [_job(shares, arguments, number, shards) for number in range(1, shards + 1)]
        if run_jobs(jobs, engine, folder, tries=tries, title="shares"):
            put_together(cfg, [job.done for job in jobs], output)
            shutil.rmtree(shares)
    return output


def _check(cfg: Any) -> None:
    if cfg.common_eval.results_path is None:
        raise InputError("--results-path: give the folder for generate-SPLIT.txt, beside which the work lies")
    if cfg.generation.sampling:
        raise InputError("--sampling: what a process draws depends on all that it drew before; use docnmt translate")
    if cfg.distributed_training.distributed_world_size > 1 and not torch.cuda.is_available():
        raise InputError("--distributed-world-size: leave it out; --shards says how many processes there are")


def _models(path: str) -> List[Path]:
    models = list(map(Path, utils.split_paths(path)))
    for one in models:
        check_file(one)
    return models


def _data(path: str, split: str) -> Iterator[Path]:
    """The files of data-bins, without the indexes that jobs write beside them, and features in the folder around."""
    for data_bin in map(Path, utils.split_paths(path)):
        around = sorted(folder_around(data_bin).glob(f"{split}.*.np[yz]"))
        files = [*sorted(data_bin.iterdir()), *around] if data_bin.is_dir() else []
        yield from (file for file in files if file.is_file() and not file.name.startswith(".") and not is_index(file))


def _begin(shares: Path, work: Dict[str, Any]) -> None:
    """Makes the folder of shares; those of other work are removed."""
    if differences(shares / WORK, work) is not None:
        shutil.rmtree(shares, ignore_errors=True)
        write_work(shares / WORK, work)


def _job(shares: Path, arguments: Sequence[str], number: int, of: int) -> Job:
    share = shares / f"{number}-of-{of}.jsonl"
    own = ["generate", "--shards", str(of), "--shard", str(number), "--share", str(share)]
    return Job(f"share-{number}-of-{of}", (*own, *arguments), share)


def put_together(cfg: Any, shares: Sequence[Path], output: Path) -> None:
    """Writes what one process prints: batch after batch, and the score of all.

    Args:
        cfg: fairseq's configuration.
        shares: files of :func:`~docnmt_fairseq.translate.generated_share.write_share`, all of them.
        output: file to write.
    """
    scorer = scoring.build_scorer(cfg.scoring, tasks.setup_task(cfg.task).target_dictionary)
    scored = 0
    with atomic_files(output) as (stream,), FilesByTurns() as files:
        batches = [read_share(share, files) for share in shares]
        for batch in heapq.merge(*batches, key=attrgetter("number")):
            stream.write(batch.text)
            for method, *sides in batch.scored:
                getattr(scorer, method)(*(_as_given(side) for side in sides))
                scored += 1
        if scored:
            score = f"Generate {cfg.dataset.gen_subset} with beam={cfg.generation.beam}: {scorer.result_string()}"
            stream.write(f"{score}\n")
            logger.info(score)


def _as_given(side: Any) -> Any:
    return torch.tensor(side, dtype=torch.int32) if isinstance(side, list) else side
