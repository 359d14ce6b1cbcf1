"""Triton programs of conditional attention as launched, and limits of their resources: :data:`LIMITS`.

Needs Triton; a GPU is not needed, see :mod:`tests.support.ahead_of_time`.
"""

from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping

import torch
import triton

from docnmt_fairseq.context.conditional.kernels.triton import attend, choose, score
from docnmt_fairseq.context.conditional.kernels.triton import programs as settings
from docnmt_fairseq.context.conditional.kernels.triton.plans import FIELDS, TILE

PLACES = 4  # t


@dataclass(frozen=True)
class Limit:
    """Limits of the resources of a program.

    Attributes:
        registers: of a thread.
        shared: KiB of shared memory a block of threads.
        stack: bytes a thread of what registers do not hold.
    """

    registers: int
    shared: int
    stack: int = 0


# An SM has 65,536 registers: 512 threads with up to 128 of them each, or 256 with up to 255; GPUs since Ampere give a
# block of threads 99 KiB at least.
LIMITS = {
    "choose": Limit(registers=255, shared=64),
    "walk": Limit(registers=255, shared=16),
    "score": Limit(registers=128, shared=16),
    "score, dq": Limit(registers=128, shared=16),
    "score, dk": Limit(registers=128, shared=16),
    "attend": Limit(registers=255, shared=99),
    "combine": Limit(registers=128, shared=16),
    "delta": Limit(registers=128, shared=16),
    "attend, backward": Limit(registers=255, shared=99),
    "dq of tokens": Limit(registers=128, shared=16),
    "sum of parts": Limit(registers=128, shared=16),
}
# float32 is served where it is asked for, never by itself: its three products for one do not fit into the registers.
SPILLING = Limit(registers=255, shared=99, stack=128)
LIMITS_FLOAT32 = {**LIMITS, "attend": SPILLING, "attend, backward": SPILLING}
HEAVY = ("choose", "attend", "attend, backward")


@dataclass(frozen=True)
class Program:
    """Program and its arguments of compilation.

    Attributes:
        name: as in :data:`LIMITS`.
        function: decorated by ``triton.jit``.
        constants: see :func:`tests.support.ahead_of_time.compiled`.
    """

    name: str
    function: Any
    constants: Mapping[str, Any]


def programs(width: int, dtype: torch.dtype, dropout: bool = True) -> Iterator[Program]:
    """Returns all programs for heads of a width and states of a type, as launched for t = ``PLACES``."""
    precision = "tf32x3"  # of float32 alone
    attention = {"DIM": width, "DROPOUT": dropout, "PRECISION": precision}
    tiled = {"DIM": width, "PLACES": triton.next_power_of_2(PLACES), "FIELDS": FIELDS}
    chosen = {
        "choose": (choose.choose_kernel, {**tiled, "TOKENS": TILE, **settings.CHOOSE.options(width, dtype)}),
        "walk": (choose.walk_kernel, {**tiled, **choose.walk_options(PLACES, width, dtype)}),
        "attend": (attend.attend_kernel, {**attention, **settings.ATTEND.options(width, dtype)}),
        "attend, backward": (
            attend.attend_backward_kernel,
            {**attention, **settings.BACKWARD.options(width, dtype)},
        ),
    }
    simple: Dict[str, Any] = {
        "score": (score.score_kernel, settings.SCORE),
        "score, dq": (score.score_queries_kernel, settings.SCORE),
        "score, dk": (score.score_keys_kernel, settings.SCORE_KEYS),
        "combine": (attend.combine_kernel, settings.ROWWISE),
        "delta": (attend.delta_kernel, settings.ROWWISE),
        "dq of tokens": (attend.queries_kernel, settings.ROWWISE),
        "sum of parts": (settings.add_parts_kernel, settings.ADD_PARTS),
    }
    for name in LIMITS:
        if name in chosen:
            function, constants = chosen[name]
        else:
            function, own = simple[name]
            constants = {"DIM": width, **own.options(width, dtype)}
        yield Program(name, function, constants)
