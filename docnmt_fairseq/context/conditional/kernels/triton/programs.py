"""Shared parts of the Triton programs: block sizes, products, dropout, and launching.

Block sizes depend on head width and type, such that registers hold all intermediate results. The tests compile each
program ahead of time and check its registers and shared memory.
"""

import functools
import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import ContextManager, Dict, Mapping, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.context.conditional.kernels.triton.kernel import interpreted

MIN_WIDTH = 16  # of the matrix units
LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
WIDEN = tl.constexpr(interpreted())  # the interpreter multiplies bfloat16 as if they were integers


@dataclass(frozen=True)
class Settings:
    """Compiler settings of a program.

    Attributes:
        blocks: block sizes by name.
        warps: number of warps, of 32 threads each.
        others: settings for wider heads, by minimum width and element size in bytes.
    """

    blocks: Mapping[str, int]
    warps: int = 4
    others: Mapping[Tuple[int, int], "Settings"] = field(default_factory=dict)

    def options(self, width: int, dtype: torch.dtype) -> Dict[str, int]:
        """Returns the compiler options for a head width and a type."""
        fitting = [minimum for minimum, size in self.others if size == dtype.itemsize and minimum <= width]
        chosen = self.others[max(fitting), dtype.itemsize] if fitting else self
        return {**chosen.blocks, "num_warps": chosen.warps, "num_stages": 2}


CHOOSE = Settings({"SENTENCES": 64}, others={(16, 4): Settings({"SENTENCES": 32})})
WALK = Settings({"ELEMENTS": 8192})  # of gathered keys; determines the tokens per program
SCORE = Settings({"ROWS": 32})
SCORE_KEYS = Settings({"PAIRS": 64})
ATTEND = Settings(
    {"QUERIES": 64, "KEYS": 32},
    others={
        (128, 2): Settings({"QUERIES": 64, "KEYS": 32}, warps=8),
        (128, 4): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
    },
)
BACKWARD = Settings(
    {"QUERIES": 64, "KEYS": 32},
    others={
        (128, 2): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
        (64, 4): Settings({"QUERIES": 32, "KEYS": 32}, warps=8),
        (128, 4): Settings({"QUERIES": 16, "KEYS": 32}, warps=8),
    },
)
ROWWISE = Settings({"ROWS": 32})
ADD_PARTS = Settings({"KEYS": 32})


@triton.jit
def product(a: tl.tensor, b: tl.tensor, PRECISION: tl.constexpr) -> tl.tensor:
    """Returns the matrix product a b, accumulated in float32."""
    if WIDEN:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def dropout_factors(
    seed: tl.int32,
    pairs: tl.tensor,
    token: tl.int32,
    threshold: tl.int32,
    factor: tl.float32,
    TOKENS: tl.constexpr,
) -> tl.tensor:
    """Returns 0 or 1/(1 − p) for weights of pairs [b] to TOKENS tokens from ``token`` on, a multiple of 4.

    A factor depends on the seed, the pair and the token only, so the backward pass reproduces it. Philox gives four
    numbers at a time, for four adjacent tokens.

    Args:
        seed: seed of the masks.
        pairs: [b] pair numbers.
        token: index of the first token in its sentence.
        threshold: p · 2^31: a random number below drops a weight.
        factor: 1/(1 − p).
        TOKENS: a power of two.
    """
    four = token // 4 + tl.arange(0, TOKENS // 4)
    pair = pairs[:, None] + tl.zeros_like(four)[None, :]
    four = four[None, :] + tl.zeros_like(pair)
    zero = tl.zeros_like(pair)
    a, b, c, d = tl.philox(seed, pair, four, zero, zero)
    random = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), [pairs.shape[0], TOKENS])
    return tl.where((random >> 1).to(tl.int32) >= threshold, factor, 0.0)


def padded(x: Tensor) -> Tensor:
    """Returns x [..., d] contiguous, padded with zeros to a width of the matrix units."""
    lacking = max(MIN_WIDTH, triton.next_power_of_2(x.size(-1))) - x.size(-1)
    return (F.pad(x, (0, lacking)) if lacking else x).contiguous()  # padding by zero elements would copy


def in_common_type(*tensors: Tensor) -> Tuple[Tensor, ...]:
    """Returns the tensors in the widest of their types, at most float32."""
    widest = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    return tuple(x.to(torch.float32 if widest == torch.float64 else widest) for x in tensors)


def on_device_of(x: Tensor) -> ContextManager[object]:
    """Context in which programs are launched on the device of x."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
