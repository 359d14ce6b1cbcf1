"""Attention between packed rows against a loop over rows, forward and gradient."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.layers.ragged_attention import ragged_attention
from tests.reference.attention import attention

TOLERANCE = {torch.float64: {"atol": 1e-9, "rtol": 1e-9}, torch.float32: {"atol": 1e-4, "rtol": 1e-4}}


def by_loop(q, k, v, queries, keys, rows, causal, key_rows):
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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["itself", "causal", "other", "some", "moved"])
@given(data=st.data())
def test_attention_equals_a_loop_over_rows(kind, dtype, data):
    queries = Ragged(np.array(data.draw(lengths)))
    keys, rows, key_rows = queries, np.arange(queries.rows), np.arange(queries.rows)
    if kind in ("other", "some", "moved"):
        count = queries.rows + (2 if kind == "moved" else 0)
        keys = Ragged(np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))))
    if kind == "some":
        rows = np.array(sorted(data.draw(st.sets(st.integers(0, queries.rows - 1), min_size=1))))
    if kind == "moved":
        key_rows = np.array(data.draw(st.permutations(range(keys.rows)))[: queries.rows])
    plan = AttentionPlan(
        queries,
        keys,
        rows=rows if kind == "some" else None,
        causal=kind == "causal",
        key_rows=key_rows if kind == "moved" else None,
    )
    generator = torch.Generator().manual_seed(1)
    shapes = ((queries.total, 2, 3), (keys.total, 2, 3), (keys.total, 2, 3))
    inputs = [torch.randn(shape, dtype=dtype, generator=generator).requires_grad_() for shape in shapes]
    found = ragged_attention(*inputs, plan)
    expected = by_loop(*inputs, queries, keys, rows, kind == "causal", key_rows)
    torch.testing.assert_close(found, expected, **TOLERANCE[dtype])
    weights = torch.randn(expected.shape, dtype=dtype, generator=generator)
    gradients = [torch.autograd.grad((out * weights).sum(), inputs) for out in (found, expected)]
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other, **TOLERANCE[dtype])


def test_half_type_is_computed_in_float32_on_a_cpu():
    """Softmax and sums are float32's; only what comes out is rounded."""
    rows = Ragged(np.array([40, 7, 23]))
    plan, generator = AttentionPlan(rows, rows), torch.Generator().manual_seed(1)
    half = [torch.randn(rows.total, 2, 8, generator=generator).bfloat16() for _ in range(3)]
    whole = [part.float().requires_grad_() for part in half]
    half = [part.requires_grad_() for part in half]
    found, expected = ragged_attention(*half, plan), ragged_attention(*whole, plan)
    assert torch.equal(found, expected.detach().bfloat16())
    weights = torch.randn(found.shape, generator=generator).bfloat16()
    of_half = torch.autograd.grad((found * weights).sum(), half)
    of_whole = torch.autograd.grad((expected * weights.float()).sum(), whole)
    for one, other in zip(of_half, of_whole):
        assert torch.equal(one, other.bfloat16())


def test_a_row_of_keys_seen_twice_is_refused():
    rows = Ragged(np.array([2, 1]))
    with pytest.raises(ValueError, match="two rows of queries"):
        AttentionPlan(rows, rows, key_rows=np.array([0, 0]))
