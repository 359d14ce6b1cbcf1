"""One share of what ``fairseq-generate`` translates: every n-th batch, with what is printed and scored of it.

Batches are those of one process, so the documents in them, their order and all numbers are, too. fairseq's own command
does the work; only what it iterates over, prints to and scores with is watched.
"""

import io
import json
from argparse import ArgumentParser
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, TextIO, cast

import torch
from fairseq import options, scoring
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate as command

import docnmt_fairseq
from docnmt_fairseq.corpus.files import FilesByTurns, atomic_files
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json
from docnmt_fairseq.translate.shards import Shard
from docnmt_fairseq.user_dir import import_user_dir


@dataclass
class Batch:
    """What comes of a batch.

    Attributes:
        number: of the batch, among those of all shares.
        text: the lines that are printed of it.
        scored: each sentence's method of the scorer, reference and translation.
    """

    number: int
    text: str = ""
    scored: List[List[Any]] = field(default_factory=list)


def configuration(arguments: Sequence[str]) -> Any:
    """fairseq's configuration of a command line of ``fairseq-generate``.

    Args:
        arguments: without the command.

    Raises:
        InputError: no model is given, or a ``--user-dir`` that cannot be imported.
    """
    user_dir = _user_dir(arguments)
    if user_dir is not None:
        import_user_dir(user_dir)  # its mechanisms before the models
    docnmt_fairseq.register()
    args = options.parse_args_and_arch(options.get_generation_parser(), list(arguments))
    cfg = convert_namespace_to_omegaconf(args)
    if cfg.common_eval.path is None:
        raise InputError("--path: give the checkpoint")
    return cfg


def _user_dir(arguments: Sequence[str]) -> Optional[str]:
    parser = ArgumentParser(add_help=False, allow_abbrev=False)  # as fairseq looks for it
    parser.add_argument("--user-dir")
    return cast(Optional[str], parser.parse_known_args(list(arguments))[0].user_dir)


def write_share(arguments: Sequence[str], shard: Shard, output: Path) -> None:
    """Translates a share, and writes what comes of each batch as a line of JSON.

    Args:
        arguments: of fairseq-generate.
        shard: which share.
        output: file to write; appears when it is complete.
    """
    cfg = configuration(arguments)
    cfg.distributed_training.distributed_world_size = shard.of
    cfg.distributed_training.distributed_rank = shard.number - 1
    with atomic_files(output) as (stream,):
        watch = _Watch(shard, stream)
        try:
            with _watched(watch):
                command._main(cfg, watch.printed)  # behind the batches it prints the score, of this share alone
        except ZeroDivisionError:  # fairseq divides by the time that a share without a batch took
            if watch.any:
                raise


class _Watch:
    """Collects what comes of the batches of a share.

    Args:
        shard: which share.
        output: takes the batches.

    Attributes:
        any: whether there was a batch.
    """

    def __init__(self, shard: Shard, output: TextIO):
        self.shard, self.output = shard, output
        self.printed = io.StringIO()
        self.batch: Optional[Batch] = None
        self.any = False

    def batches(self, iterator: Iterable[Any], *args: Any, **kwargs: Any) -> "_Progress":
        """What fairseq iterates over instead of its progress bar."""
        return _Progress(self._each(iterator))

    def _each(self, iterator: Iterable[Any]) -> Iterator[Any]:
        for count, sample in enumerate(iterator):
            self._write()
            self.any = self.any or "net_input" in sample  # where batches do not come out even, the last is empty
            self.batch = Batch(self.shard.number - 1 + count * self.shard.of)
            yield sample
        self._write()

    def _write(self) -> None:
        if self.batch is not None:
            self.batch.text = self.printed.getvalue()
            self.output.write(json.dumps(asdict(self.batch), ensure_ascii=False) + "\n")
        self.printed.seek(0)
        self.printed.truncate()
        self.batch = None

    def build_scorer(self, cfg: Any, target: Any) -> Any:
        """fairseq's scorer, whose sentences are noted."""
        scorer = scoring.build_scorer(cfg, target)
        for name in ("add_string", "add"):
            if hasattr(scorer, name):
                setattr(scorer, name, self._noting(name, getattr(scorer, name)))
        return scorer

    def _noting(self, name: str, method: Any) -> Any:
        def add(reference: Any, translation: Any, *more: Any) -> Any:
            assert self.batch is not None
            self.batch.scored.append([name, _plain(reference), _plain(translation)])
            return method(reference, translation, *more)

        return add


class _Progress:
    """A progress bar that shows nothing."""

    def __init__(self, batches: Iterator[Any]):
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        return self.batches

    def log(self, stats: Dict[str, Any]) -> None:
        """Nothing is shown."""


@contextmanager
def _watched(watch: _Watch) -> Iterator[None]:
    """Inside the block, fairseq's command iterates and scores through the watch."""
    before = command.progress_bar, command.scoring
    command.progress_bar = SimpleNamespace(progress_bar=watch.batches)
    command.scoring = SimpleNamespace(build_scorer=watch.build_scorer)
    try:
        yield
    finally:
        command.progress_bar, command.scoring = before


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, torch.Tensor) else value


def read_share(path: Path, files: FilesByTurns) -> Iterator[Batch]:
    """Yields the batches of a share.

    Args:
        path: the file.
        files: those that are read by turns with it.

    Raises:
        InputError: the file is damaged.
    """
    lines = iter(lambda: files.opened(path).readline(), b"")
    for number, line in enumerate(lines, start=1):
        try:
            yield Batch(**parse_json(line))
        except (ValueError, TypeError) as error:
            raise InputError.at(path, number, "damaged; remove it, and give the same command again") from error
