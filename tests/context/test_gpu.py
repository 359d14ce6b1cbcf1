"""Kernels and mechanisms on a GPU against a CPU; skipped without one."""

import pytest
import torch

import docnmt_fairseq.context  # noqa: F401  (registers all)
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.kernels import KERNELS
from tests.support.comparison import run
from tests.support.documents import make_layout
from tests.support.mechanisms import build_mechanism
from tests.support.selection import keeping

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
LAYOUT = make_layout([7, 1, 12, 30, 4, 9, 2, 5, 3], [6, 3])
GPU = torch.device("cuda")


def gradients(call, inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = call(*leaves)
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).view_as(out)
    return [out, *torch.autograd.grad((out * weight).sum(), leaves)]


def assert_same(on_gpu, on_cpu, tolerance):
    for a, b in zip(on_gpu, on_cpu):
        torch.testing.assert_close(a.cpu(), b, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("name", KERNELS.names())
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_kernels(name, dtype, tolerance):
    if not KERNELS[name]().serves(GPU, dtype):
        pytest.skip("not on GPUs")
    rows = [LAYOUT.tokens.total] * 4 + [LAYOUT.tokens.rows]
    inputs = [torch.randn(n, 2, 8, generator=torch.Generator().manual_seed(n), dtype=dtype) for n in rows]
    kept = keeping([2, 2])
    on_cpu = gradients(lambda *x: conditional_attention(*x, LAYOUT, kept, kernel="dense"), inputs)
    on_gpu = gradients(
        lambda *x: conditional_attention(*x, LAYOUT.to(GPU), kept, kernel=name), [x.to(GPU) for x in inputs]
    )
    assert_same(on_gpu, on_cpu, tolerance)


@pytest.mark.parametrize("name", CONTEXT_MECHANISMS.names())
def test_mechanisms(name):
    torch.manual_seed(0)
    mechanism = build_mechanism(name, embed_dim=16, heads=2, head_dim=8, context_top_t=2).double()
    x = torch.randn(LAYOUT.tokens.total, 16, dtype=torch.double)
    on_cpu = gradients(lambda x: run(mechanism, x, LAYOUT), [x])
    mechanism.to(GPU)
    assert_same(gradients(lambda x: run(mechanism, x, LAYOUT.to(GPU)), [x.to(GPU)]), on_cpu, 1e-9)
