"""Attention between packed rows against a loop over rows; the packed backend against the grouped one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged
from docnmt_fairseq.batch.transfer import to_device
from docnmt_fairseq.layers import attention as attention_module
from docnmt_fairseq.layers.attention import has_flash_kernel, ragged_attention, serves_flash
from tests.reference.attention import attention
from tests.support.comparison import PRECISIONS, assert_same

LENGTHS = np.array([3, 1, 7, 2, 5])
OTHERS = np.array([2, 6, 1, 4, 3])
PLANS = {
    "self": lambda: AttentionPlan(*[Ragged(LENGTHS)] * 2),
    "causal": lambda: AttentionPlan(*[Ragged(LENGTHS)] * 2, causal=True),
    "cross": lambda: AttentionPlan(Ragged(LENGTHS), Ragged(OTHERS)),
    "some rows": lambda: AttentionPlan(Ragged(LENGTHS), Ragged(OTHERS), rows=np.array([0, 2, 3])),
    "permuted": lambda: AttentionPlan(Ragged(LENGTHS), Ragged(OTHERS), key_rows=np.array([4, 2, 0, 1, 3])),
}
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def attention_in_loops(q, k, v, queries, keys, rows, causal, key_rows):
    """[T] eq. 1, token by token and head by head, of the attended rows' queries in order."""
    out = []
    for row in rows:
        tokens = range(keys.offsets[key_rows[row]], keys.offsets[key_rows[row] + 1])
        for place, query in enumerate(range(queries.offsets[row], queries.offsets[row + 1])):
            seen = tokens[: place + 1] if causal else tokens
            heads = range(q.size(1))
            out.append(torch.stack([attention(q[query, h], k[seen, h], v[seen, h]) for h in heads]))
    return torch.stack(out)


lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@PRECISIONS
@pytest.mark.parametrize("kind", PLANS)
@settings(max_examples=20)
@given(data=st.data())
def test_attention_equals_loop_over_rows(kind, dtype, tolerance, data):
    queries = Ragged(np.array(data.draw(lengths)))
    keys, rows, key_rows = queries, np.arange(queries.rows), np.arange(queries.rows)
    if kind in ("cross", "some rows", "permuted"):
        count = queries.rows + (2 if kind == "permuted" else 0)
        keys = Ragged(np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))))
    if kind == "some rows":
        rows = np.array(sorted(data.draw(st.sets(st.integers(0, queries.rows - 1), min_size=1))))
    if kind == "permuted":
        key_rows = np.array(data.draw(st.permutations(range(keys.rows)))[: queries.rows])
    plan = AttentionPlan(
        queries,
        keys,
        rows=rows if kind == "some rows" else None,
        causal=kind == "causal",
        key_rows=key_rows if kind == "permuted" else None,
    )
    generator = torch.Generator().manual_seed(1)
    shapes = ((queries.total, 2, 3), (keys.total, 2, 3), (keys.total, 2, 3))
    inputs = [torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes]
    found = ragged_attention(*inputs, plan)
    expected = attention_in_loops(*inputs, queries, keys, rows, kind == "causal", key_rows)
    assert_same(found, expected, inputs, tolerance)


def test_half_types_are_computed_in_float32_on_a_cpu():
    rows = Ragged(np.array([40, 7, 23]))
    plan, generator = AttentionPlan(rows, rows), torch.Generator().manual_seed(1)
    half = [torch.randn(rows.total, 2, 8, generator=generator).bfloat16() for _ in range(3)]
    full = [part.float().requires_grad_() for part in half]
    half = [part.requires_grad_() for part in half]
    found, expected = ragged_attention(*half, plan), ragged_attention(*full, plan)
    assert torch.equal(found, expected.detach().bfloat16())
    weights = torch.randn(found.shape, generator=generator).bfloat16()
    half_grads = torch.autograd.grad((found * weights).sum(), half)
    full_grads = torch.autograd.grad((expected * weights.float()).sum(), full)
    for one, other in zip(half_grads, full_grads):
        assert torch.equal(one, other.bfloat16())


def inputs_of(plan, dtype=torch.float64, d=3, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    rows = (plan.queries.total, plan.keys.total, plan.keys.total)
    return [torch.randn(n, 2, d, generator=generator, dtype=dtype).to(device).requires_grad_() for n in rows]


def results(inputs, plan, **options):
    """Output and gradients as float64 on the CPU."""
    out = ragged_attention(*inputs, plan, **options)
    weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).to(out.device).view_as(out)
    found = [out, *torch.autograd.grad((out * weight).sum(), inputs)]
    return [x.detach().to("cpu", torch.float64) for x in found]


def flash_on_a_cpu(q, k, v, q_offsets, k_offsets, max_q, max_k, dropout, causal, debug, *, scale=None):
    """``_flash_attention_forward`` row by row; refuses what the kernel refuses."""
    for x, offsets, most in ((q, q_offsets, max_q), (k, k_offsets, max_k)):
        assert offsets.dtype == torch.int32 and int(offsets[-1]) == len(x) and int(offsets.diff().max()) == most
        assert x.size(-1) % 8 == 0 and x.stride(-1) == 1
    bounds = zip(q_offsets[:-1], q_offsets[1:], k_offsets[:-1], k_offsets[1:])
    sides = (
        (x[first:end].transpose(0, 1) for x, first, end in ((q, a, b), (k, c, d), (v, c, d))) for a, b, c, d in bounds
    )
    rows = [F.scaled_dot_product_attention(*row, dropout_p=dropout, is_causal=causal, scale=scale) for row in sides]
    return torch.cat(rows, 1).transpose(0, 1), None


@pytest.fixture
def flash(monkeypatch):
    """Serves float64 on a CPU with the flash backend; returns the calls."""
    calls = []
    monkeypatch.setattr(attention_module, "has_flash_kernel", lambda device: True)
    monkeypatch.setattr(attention_module, "FLASH_TYPES", (torch.float64,))
    kernel = lambda *x, **options: calls.append(x) or flash_on_a_cpu(*x, **options)  # noqa: E731
    monkeypatch.setattr(torch.ops.aten, "_flash_attention_forward", kernel)
    return calls


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("kind", PLANS)
def test_flash_backend_equals_grouped_backend(kind, scale, flash):
    plan, inputs = PLANS[kind](), inputs_of(PLANS[kind]())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_module, "has_flash_kernel", lambda device: False)
        expected = results(inputs, plan, scale=scale)
    assert not flash
    found = results(inputs, plan, scale=scale)
    assert len(flash) == 1
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_flash_backend_serves_its_types_and_narrow_heads_only(flash):
    narrow, wide = (torch.zeros(3, 2, d, dtype=torch.float64) for d in (8, 264))
    assert serves_flash(narrow, narrow, narrow)
    assert not serves_flash(narrow.float(), narrow.float(), narrow.float())
    assert not any(
        serves_flash(*x) for x in [(narrow, narrow, wide), (wide, wide, wide), (narrow, narrow.half(), narrow)]
    )


def assert_dropout(device, dtype):
    """With equal weights and values of 1, outputs are sums of kept weights: 1 on average, and gradients agree."""
    rows = Ragged(np.full(40, 25))
    q, k = (torch.zeros(rows.total, 2, 8, dtype=dtype).to(device) for _ in range(2))
    v = torch.ones(rows.total, 2, 8, dtype=dtype).to(device).requires_grad_()
    out = ragged_attention(q, k, v, to_device(AttentionPlan(rows, rows), device), dropout=0.4)
    (gradient,) = torch.autograd.grad(out.sum(), v)
    out, gradient = (x.detach().to("cpu").double() for x in (out, gradient))
    assert out.mean() == pytest.approx(1, abs=0.02) and out.std() > 0.1
    assert gradient.sum().item() == pytest.approx(out.sum().item(), rel=1e-2)


@needs_gpu
@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 4e-3), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("kind", PLANS)
def test_flash_backend_on_a_gpu(kind, dtype, tolerance):
    plan, gpu = PLANS[kind](), torch.device("cuda")
    rounded = [x.detach().double().requires_grad_() for x in inputs_of(plan, dtype, d=12)]
    expected = results(rounded, plan)
    inputs = inputs_of(plan, dtype, d=12, device=gpu)
    if not has_flash_kernel(inputs[0].device):
        pytest.skip("no flash attention on this GPU")
    assert serves_flash(*inputs)
    for one, other in zip(results(inputs, to_device(plan, gpu)), expected):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@needs_gpu
def test_flash_backend_dropout_on_a_gpu():
    assert_dropout(torch.device("cuda"), torch.float16)
