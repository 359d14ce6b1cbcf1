"""Capabilities of the processor."""

import platform

import pytest
import torch

from docnmt_fairseq.native import cpu


@pytest.mark.skipif(platform.machine().lower() not in cpu.X86, reason="not x86")
def test_emulated_bf16_products_do_not_count(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert not cpu.capabilities.__wrapped__().bf16
