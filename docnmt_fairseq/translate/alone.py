"""Nobody else writes where a translation does; shards of one output are at work side by side."""

from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from docnmt_fairseq.locks import beside, holding, in_folder
from docnmt_fairseq.translate.parts import part_path
from docnmt_fairseq.translate.request import Request


@contextmanager
def holding_output(request: Request) -> Iterator[None]:
    """Holds what a request writes: all of its output, or a shard's part of it.

    Raises:
        InputError: somebody else writes it; names the process.
    """
    shard = request.shard
    if request.output is None:
        yield
    elif shard.of == 1:
        with holding(_lock(request, request.output), f"--output {request.output}"):
            yield
    else:
        own = part_path(_lock(request, request.output), shard.number, shard.of)
        with side_by_side(request, shard.of), holding(own, f"--shard {shard.number}: {request.output}"):
            yield


@contextmanager
def side_by_side(request: Request, shards: int) -> Iterator[None]:
    """Keeps everybody from an output but its shards, and those who see to them.

    Args:
        request: with an output.
        shards: how many it has; of another number they would not fit together.

    Raises:
        InputError: somebody else writes it; names the process.
    """
    assert request.output is not None
    with holding(_lock(request, request.output), f"--output {request.output}", shared_by=f"{shards} shards"):
        yield


def _lock(request: Request, output: Path) -> Path:
    several = len(request.inputs) > 1 or request.inputs[0].is_dir()
    return in_folder(output) if output.is_dir() or (several and not output.exists()) else beside(output)
