"""Ahead-of-time compilation of the Triton programs, within their limits of registers and memory."""

import pytest
import torch

pytest.importorskip("triton")

from tests.support.ahead_of_time import compiled
from tests.support.triton_programs import HEAVY, LIMITS, LIMITS_FLOAT32, programs


def assert_within_limits(width, dtype, target, names):
    chosen = [program for program in programs(width, dtype) if program.name in names]
    assert [program.name for program in chosen] == list(names)
    for program in chosen:
        needs = compiled(program.function, dtype, program.constants, target)
        limit = (LIMITS_FLOAT32 if dtype == torch.float32 else LIMITS)[program.name]
        assert needs.registers <= limit.registers, (program.name, needs)
        assert needs.stack <= limit.stack, (program.name, needs)
        assert needs.shared <= limit.shared * 1024, (program.name, needs)
        in_float32 = dtype == torch.float32 and program.name == "choose"
        assert needs.matrix == (program.name in HEAVY and not in_float32), (program.name, needs)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "target"), [(64, 80), (128, 90), (64, 100)])
def test_all_programs_compile_within_their_limits(width, target):
    assert_within_limits(width, torch.bfloat16, target, LIMITS)


@pytest.mark.slow
def test_float16_and_float32():
    assert_within_limits(64, torch.float16, 90, ["choose", "attend", "attend, backward"])
    assert_within_limits(64, torch.float32, 90, LIMITS)
