"""Triton programs compiled ahead of time, without a GPU, and their resources.

Triton contains NVIDIA's assembler and ``cuobjdump``, which reports registers and stack of a cubin.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Mapping

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {80: "A100", 90: "H100, H200", 100: "B200"}  # compute capability × 10, and who has it
NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
# Types that the pointer arguments of the programs point to; all others point to states.
POINTED_TO = {
    "fp32": ("scores", "grad_scores", "log_sum", "delta", "sum_of_pair", "q_of_pair", "parts", "k_parts", "v_parts"),
    "i32": ("tiles", "order", "start", "first", "counts", "group", "slot", "offsets"),
    "i64": ("items", "sentence", "chosen"),
}
STATES = ("q", "k", "v", "out", "grad_out", "out_of_pair", "grad_q", "grad_k", "grad_v", "sums")


@dataclass(frozen=True)
class Needs:
    """Resources of a compiled program.

    Attributes:
        registers: of a thread, 255 at most.
        stack: bytes a thread in local memory: what registers do not hold.
        shared: bytes of shared memory a block of threads.
        matrix: whether matrix units are used.
    """

    registers: int
    stack: int
    shared: int
    matrix: bool


def pointed_to(argument: str, states: torch.dtype) -> str:
    """Returns the type that an argument of a program points to."""
    for name, arguments in POINTED_TO.items():
        if argument in arguments:
            return name
    if argument not in STATES:
        raise ValueError(f"{argument!r}: unknown pointer type; add it to {__name__}")
    return NAMES[states]


def signature(program: Any, states: torch.dtype) -> Dict[str, str]:
    """Returns the types of a program's arguments, in Triton's names."""
    types = {}
    for parameter in program.params:
        if parameter.is_constexpr:
            types[parameter.name] = "constexpr"
        else:
            types[parameter.name] = parameter.annotation_type or f"*{pointed_to(parameter.name, states)}"
    return types


def compiled(program: Any, states: torch.dtype, constants: Mapping[str, Any], target: int) -> Needs:
    """Returns the resources of a program.

    Args:
        program: decorated by ``triton.jit``.
        states: the type of token states.
        constants: its constexpr arguments, ``num_warps`` and ``num_stages``.
        target: compute capability × 10.
    """
    types = signature(program, states)
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types.values()) if kind.startswith("*")}
    options = {name: constants[name] for name in ("num_warps", "num_stages")}
    constexprs = {name: constants[name] for name, kind in types.items() if kind == "constexpr"}
    source = ASTSource(fn=program, signature=types, constexprs=constexprs, attrs=aligned)
    result = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
    usage = _cuobjdump(result.asm["cubin"], "--dump-resource-usage")
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert found is not None, usage
    matrix = re.search(r"\b(?:wgmma|tcgen05|mma)\b", result.asm["ptx"]) is not None
    return Needs(int(found[1]), int(found[2]), result.metadata.shared, matrix)


def _cuobjdump(cubin: bytes, option: str) -> str:
    """Returns the output of Triton's ``cuobjdump`` for a cubin."""
    program = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        result = subprocess.run([str(program), option, file.name], capture_output=True, text=True, check=True)
    return result.stdout
