"""What the programs share: products, dropout, and how they are launched."""

import functools
import math
from contextlib import nullcontext
from typing import ContextManager, Tuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.context.conditional.kernels.triton.available import interpreted

LEAST_WIDTH = 16  # of the matrix units
LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
WIDEN = tl.constexpr(interpreted())  # the interpreter multiplies bfloat16 as if they were integers


@triton.jit
def product(a: tl.tensor, b: tl.tensor, PRECISION: tl.constexpr) -> tl.tensor:
    """a b of matrices, summed in float32."""
    if WIDEN:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def dropout_factors(
    seed: tl.int32,
    pairs: tl.tensor,
    token: tl.int32,
    least: tl.int32,
    factor: tl.float32,
    TOKENS: tl.constexpr,
) -> tl.tensor:
    """0 or 1/(1 − p) for weights of pairs [b] to TOKENS tokens of their sentence from ``token`` on, a multiple of 4.

    A weight's factor depends on the seed, its pair and its token alone, so the backward pass finds it again. Philox
    gives four numbers at a time, for four neighbouring tokens.

    Args:
        seed: of the masks.
        pairs: [b] numbers of pairs.
        token: place of the first token in its sentence.
        least: p · 2^31: random numbers below drop a weight.
        factor: 1/(1 − p).
        TOKENS: a power of two.
    """
    four = token // 4 + tl.arange(0, TOKENS // 4)
    pair = pairs[:, None] + tl.zeros_like(four)[None, :]
    four = four[None, :] + tl.zeros_like(pair)
    zero = tl.zeros_like(pair)
    a, b, c, d = tl.philox(seed, pair, four, zero, zero)
    random = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), [pairs.shape[0], TOKENS])
    return tl.where((random >> 1).to(tl.int32) >= least, factor, 0.0)


def prepared(x: Tensor) -> Tensor:
    """x [..., d] contiguous, filled up with zeros to a width of the matrix units: neither scores nor sums see them."""
    missing = max(LEAST_WIDTH, triton.next_power_of_2(x.size(-1))) - x.size(-1)
    return (F.pad(x, (0, missing)) if missing else x).contiguous()  # padding by nothing would copy


def of_one_type(*tensors: Tensor) -> Tuple[Tensor, ...]:
    """The tensors in the widest of their types, which is at most float32."""
    widest = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    return tuple(x.to(torch.float32 if widest == torch.float64 else widest) for x in tensors)


def on_device_of(x: Tensor) -> ContextManager[object]:
    """A context in which programs are launched on the device of x."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()
