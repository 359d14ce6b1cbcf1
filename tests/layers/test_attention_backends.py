"""Attention to packed rows by every backend: against a loop over rows, and on a GPU against float64."""

import numpy as np
import pytest
import torch

from docnmt_fairseq.batch.attention_plan import AttentionPlan, PackedRows
from docnmt_fairseq.batch.device import to_device
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.layers.attention_backends import ATTENTION_BACKENDS, backend_for, packed
from docnmt_fairseq.layers.ragged_attention import ragged_attention
from tests.support import device as counted

LENGTHS = np.array([3, 1, 7, 2, 5])
OTHERS = np.array([2, 6, 1, 4, 3])
KINDS = {
    "itself": lambda: AttentionPlan(*[Ragged(LENGTHS)] * 2),
    "causal": lambda: AttentionPlan(*[Ragged(LENGTHS)] * 2, causal=True),
    "other": lambda: AttentionPlan(Ragged(LENGTHS), Ragged(OTHERS)),
    "some": lambda: AttentionPlan(Ragged(LENGTHS), Ragged(OTHERS), rows=np.array([0, 2, 3])),
    "moved": lambda: AttentionPlan(Ragged(LENGTHS), Ragged(OTHERS), key_rows=np.array([4, 2, 0, 1, 3])),
}


def inputs_of(plan, dtype=torch.float64, d=3, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    rows = (plan.queries.total, plan.keys.total, plan.keys.total)
    return [torch.randn(n, 2, d, generator=generator, dtype=dtype).to(device).requires_grad_() for n in rows]


def results(inputs, plan, **options):
    """Output and gradients, as float64 on the CPU."""
    out = ragged_attention(*inputs, plan, **options)
    weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).to(out.device).view_as(out)
    found = [out, *torch.autograd.grad((out * weight).sum(), inputs)]
    return [x.detach().to("cpu", torch.float64) for x in found]


@counted.NEEDED
@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_rows_give_what_padded_rows_give(kind, scale):
    plan = KINDS[kind]()
    expected = results(inputs_of(plan), plan, scale=scale)
    with counted.device(packed_attention=True, types=(torch.float64,)) as there:
        inputs = inputs_of(plan, device=there)
        assert isinstance(backend_for(*inputs), packed.PackedAttention)
        with counted.counted_device.counted(raising=True) as count:
            out = ragged_attention(*inputs, to_device(plan, there), scale=scale)
            assert count.kinds["_flash_attention_forward"] == 1 and not count.kinds["index_put"]
        found = results(inputs, to_device(plan, there), scale=scale)
    assert out.shape == expected[0].shape
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


@counted.NEEDED
def test_packed_rows_drop_what_dropout_says():
    """With a weight of 1 for each value, results are sums of kept weights: 1 on average, and gradients follow them."""
    rows = Ragged(np.full(40, 25))
    plan = AttentionPlan(rows, rows)
    with counted.device(packed_attention=True, types=(torch.float64,)) as there:
        q, k = (torch.zeros(rows.total, 2, 8, dtype=torch.float64).to(there) for _ in range(2))
        v = torch.ones(rows.total, 2, 8, dtype=torch.float64).to(there).requires_grad_()
        out = ragged_attention(q, k, v, to_device(plan, there), dropout=0.4)
        (gradient,) = torch.autograd.grad(out.sum(), v)
        out, gradient = out.detach().to("cpu"), gradient.to("cpu")
    assert out.mean() == pytest.approx(1, abs=0.02) and out.std() > 0.1
    assert gradient.sum().item() == pytest.approx(out.sum().item())  # the same weights were dropped


def test_packed_rows_of_a_plan():
    rows = Ragged(np.array([2, 3, 1]))
    whole = PackedRows.of(rows, np.arange(3))
    assert whole.items is None and whole.cumulative.tolist() == [0, 2, 5, 6] and whole.longest == 3
    some = PackedRows.of(rows, np.array([2, 0]))
    assert some.items.tolist() == [5, 0, 1] and some.cumulative.tolist() == [0, 1, 3] and some.longest == 2
    assert whole.cumulative.dtype == some.cumulative.dtype == torch.int32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cpu_computes_padded_rows(dtype):
    assert type(backend_for(*[torch.zeros(3, 2, 8, dtype=dtype)] * 3)) is ATTENTION_BACKENDS["grouped"]


@counted.NEEDED
def test_what_the_kernel_does_not_take_is_padded():
    with counted.device(packed_attention=True) as there:
        half, wide = (torch.zeros(3, 2, d, dtype=torch.bfloat16).to(there) for d in (8, 264))
        taken = packed.PackedAttention().serves
        assert taken(half, half, half)
        assert not taken(half.float(), half.float(), half.float())
        assert not taken(half, half, wide) and not taken(wide, wide, wide) and not taken(half, half.half(), half)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_rows_on_a_gpu(kind, dtype, tolerance):
    plan, gpu = KINDS[kind](), torch.device("cuda")
    rounded = [x.detach().double().requires_grad_() for x in inputs_of(plan, dtype, d=12)]
    expected = results(rounded, plan)
    inputs = inputs_of(plan, dtype, d=12, device=gpu)
    if not packed.has_kernel(inputs[0].device):
        pytest.skip("no flash attention on this GPU")
    assert isinstance(backend_for(*inputs), packed.PackedAttention)
    for one, other in zip(results(inputs, to_device(plan, gpu)), expected):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_dropout_on_a_gpu():
    rows, gpu = Ragged(np.full(40, 25)), torch.device("cuda")
    plan = to_device(AttentionPlan(rows, rows), gpu)
    q, k = (torch.zeros(rows.total, 2, 8, dtype=torch.float16, device=gpu) for _ in range(2))
    v = torch.ones(rows.total, 2, 8, dtype=torch.float16, device=gpu, requires_grad=True)
    if not packed.has_kernel(v.device):
        pytest.skip("no flash attention on this GPU")
    out = ragged_attention(q, k, v, plan, dropout=0.4)
    (gradient,) = torch.autograd.grad(out.sum(), v)
    assert out.float().mean().item() == pytest.approx(1, abs=0.02) and out.float().std() > 0.1
    assert gradient.float().sum().item() == pytest.approx(out.float().sum().item(), rel=1e-2)
