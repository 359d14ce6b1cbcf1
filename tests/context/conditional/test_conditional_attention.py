"""Conditional attention with the automatically chosen kernel."""

import numpy as np
import pytest
import torch

from docnmt_fairseq.context.conditional.attention import conditional_attention
from tests.reference import attention as reference
from tests.support.comparison import assert_same
from tests.support.documents import make_layout
from tests.support.mechanisms import build_mechanism
from tests.support.selection import keeping

HEADS, D_K = 2, 3


def random_inputs(layout, dtype=torch.double, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = [layout.tokens.total] * 4 + [layout.tokens.rows]
    inputs = [torch.randn(n, HEADS, D_K, generator=generator, dtype=torch.double).to(dtype) for n in rows]
    return [x.requires_grad_() for x in inputs]


def compare(layout, kept, dtype=torch.double, atol=1e-9):
    inputs = random_inputs(layout, dtype)
    fast = conditional_attention(*inputs, layout, keeping(kept))
    slow = reference.conditional_attention(*inputs, layout, kept)
    assert_same(fast, slow, inputs, atol)


@pytest.mark.parametrize("t", [1, 2, 7, 20, 22])
def test_twenty_sentences_in_float32(t):
    rng = np.random.default_rng(0)
    layout = make_layout(rng.integers(1, 5, 20), [20])
    compare(layout, np.array([min(t, 20)]), dtype=torch.float32, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 11, 50])
@pytest.mark.parametrize("extra", [None, 0, 2])
def test_up_to_fifty_sentences(n, extra):
    rng = np.random.default_rng(n)
    layout = make_layout(rng.integers(1, 6, n), [n])
    compare(layout, np.array([4 if extra is None else n + extra]).clip(max=n))


def test_equal_sentences_equal_loop_reference():
    layout = make_layout([2] * 5, [5])
    inputs = random_inputs(layout)
    with torch.no_grad():
        inputs[4].copy_(inputs[4][:1].expand_as(inputs[4]))
    kept = np.array([2])
    expected = reference.conditional_attention(*inputs, layout, kept)
    torch.testing.assert_close(conditional_attention(*inputs, layout, keeping(kept)), expected)


def test_autocast_with_documents_that_do_not_select(monkeypatch):
    """Autocast on a GPU computes softmax in float32."""
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda x, dim: softmax(x.float(), dim))
    layout = make_layout([2, 1, 2, 3], [3, 1])
    inputs = random_inputs(layout, torch.bfloat16)
    assert conditional_attention(*inputs, layout, keeping([2, 1])).isfinite().all()


@pytest.mark.parametrize("name", ["conditional", "tree"])
def test_tied_query_key_initialisation(name):
    for asked in (False, True):
        built = build_mechanism(name, embed_dim=6, heads=HEADS, head_dim=D_K, context_tie_qk_init=asked)
        assert torch.equal(built.k_proj.weight, built.q_proj.weight) == asked
        assert built.k_proj.weight is not built.q_proj.weight
