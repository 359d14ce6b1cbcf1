"""Kernel ``triton``, tested by check_triton.py under Triton's interpreter on the CPU, and on a GPU if there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from docnmt_fairseq.context.conditional.kernels import KERNELS, kernel_for
from docnmt_fairseq.context.conditional.kernels.triton import plans
from docnmt_fairseq.errors import InputError

CHECKS = Path(__file__).with_name("check_triton.py")
ROOT = CHECKS.parents[3]
needs_triton = pytest.mark.skipif(plans.missing() is not None, reason=f"{plans.missing()}")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
PLACES = pytest.mark.parametrize("interpreter", ["1", pytest.param("0", marks=needs_gpu)], ids=["interpreter", "gpu"])


@needs_triton
@pytest.mark.slow
@PLACES
def test_equals_dense_kernel(interpreter):
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-m", "", str(CHECKS)]
    environment = {**os.environ, "TRITON_INTERPRET": interpreter}
    result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
    assert " passed" in result.stdout and "skipped" not in result.stdout


def test_missing_triton_is_reported(monkeypatch):
    monkeypatch.setattr(plans.importlib.util, "find_spec", lambda name: None)
    plans.missing.cache_clear()
    try:
        assert not KERNELS["triton"].serves(torch.device("cuda"), torch.bfloat16)
        with pytest.raises(InputError):
            kernel_for("triton", torch.zeros(1, dtype=torch.bfloat16))
    finally:
        monkeypatch.undo()
        plans.missing.cache_clear()


def test_gpus_before_ampere_use_pytorch(monkeypatch):
    if plans.missing() is not None:
        pytest.skip(plans.missing())
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    for capability, serves in (((7, 5), False), ((8, 0), True), ((9, 0), True), ((10, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert KERNELS["triton"].serves(torch.device("cuda"), torch.float16) == serves
        assert KERNELS["triton"].preferred(torch.device("cuda"), torch.float16) == serves
