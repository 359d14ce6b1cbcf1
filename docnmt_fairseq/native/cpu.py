"""Capabilities of this CPU: instruction set of the compiled kernels, and matrix products of packed weights.

This is the one place that asks PyTorch and the processor. Everything else reads :func:`capabilities`.
"""

import functools
import os
import platform
from dataclasses import dataclass
from typing import Optional

import torch

# PyTorch's own detection, which the environment variable ATEN_CPU_CAPABILITY can lower.
INSTRUCTION_SETS = {"AVX512": "avx512", "AVX2": "avx2"}
X86 = ("x86_64", "amd64")
WITHOUT_VNNI = ("SSE41", "AVX", "AVX2")  # values of ONEDNN_MAX_CPU_ISA


@dataclass(frozen=True)
class CPUCapabilities:
    """Computations with hardware support on this processor.

    Attributes:
        instruction_set: ``avx512``, ``avx2`` or ``baseline`` (every other processor, e.g. aarch64).
        packed_float32: PyTorch (oneDNN) multiplies with packed float32 weights.
        bf16: oneDNN multiplies bfloat16 matrices (x86: AVX512-BF16 or AMX). Other processors with AVX-512 emulate it,
            which takes four times as long as float32.
        int8_engine: PyTorch's engine of dynamic int8 products; None: there is none.
        int8_dot_products: int8 products are summed without overflow (x86: VNNI). Otherwise activations are rounded to 7
            of 8 bits.
    """

    instruction_set: str
    packed_float32: bool
    bf16: bool
    int8_engine: Optional[str]
    int8_dot_products: bool


@functools.cache
def capabilities() -> CPUCapabilities:
    """Returns the capabilities of this processor, detected once per process."""
    x86 = platform.machine().lower() in X86
    dot_products = not x86 or (
        torch.cpu._is_vnni_supported() and os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() not in WITHOUT_VNNI
    )
    bf16_products = not x86 or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    # fbgemm sums 8 × 7 bit products without overflow on AVX2; oneDNN needs VNNI for that.
    engines = torch.backends.quantized.supported_engines
    preferred = ("onednn", "fbgemm") if dot_products else ("fbgemm",)
    return CPUCapabilities(
        instruction_set=INSTRUCTION_SETS.get(torch.backends.cpu.get_cpu_capability(), "baseline"),
        packed_float32=_multiplies(torch.float32),
        bf16=bool(bf16_products) and _multiplies(torch.bfloat16),
        int8_engine=next((engine for engine in preferred if engine in engines), None),
        int8_dot_products=bool(dot_products),
    )


def _multiplies(dtype: torch.dtype) -> bool:
    """Tries a product with packed weights: that the operator exists does not mean that the processor supports it."""
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(torch.ones(16, 16, dtype=dtype))
        torch.ops.mkldnn._linear_pointwise(torch.ones(1, 16, dtype=dtype), packed, None, "none", [], "")
    except RuntimeError:
        return False
    return True
