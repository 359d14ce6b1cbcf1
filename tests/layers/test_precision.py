"""Gradients shared by 4,096 tokens are accumulated in float32, also for half types on a CPU; stable top-k."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from docnmt_fairseq.layers import precision
from docnmt_fairseq.layers.positions import LearnedPositions
from docnmt_fairseq.layers.precision import Embedding, LayerNorm

TOKENS, WIDTH = 4096, 8
halves = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


def gradients(module, dtype, inputs):
    """Returns the gradients of a module's parameters for an output gradient of 0.01, in float32."""
    module = module.to(dtype)
    module.zero_grad()
    output = module(inputs if inputs.dtype == torch.long else inputs.to(dtype))
    output.backward(torch.full_like(output, 0.01))
    assert all(parameter.grad.dtype == dtype for parameter in module.parameters())
    return [parameter.grad.float() for parameter in module.parameters()]


@halves
@pytest.mark.parametrize("make", [lambda: Embedding(4, WIDTH, padding_idx=1), lambda: LearnedPositions(4, WIDTH, "x")])
def test_gradient_of_embeddings(make, dtype):
    tokens = torch.arange(TOKENS).reshape(4, -1) % 3
    (found,), (expected,) = (gradients(make(), kind, tokens) for kind in (dtype, torch.float32))
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0)
    assert float(found[0, 0]) > 10


@halves
def test_gradient_of_layer_norms(dtype):
    x = torch.randn(TOKENS, WIDTH, generator=torch.Generator().manual_seed(1)).to(dtype)
    found, expected = (gradients(LayerNorm(WIDTH), kind, x) for kind in (dtype, torch.float32))
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=0.01, atol=0.01)
    assert float(found[1][0]) > 40
    assert gradients(LayerNorm(WIDTH, elementwise_affine=False), dtype, x.requires_grad_()) == []


def test_float32_equals_pytorch():
    tokens = torch.arange(TOKENS) % 3
    ours, theirs = Embedding(4, WIDTH, padding_idx=1), nn.Embedding(4, WIDTH, padding_idx=1)
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(ours(tokens), theirs(tokens))
    one, other = (gradients(module, torch.float32, tokens) for module in (ours, theirs))
    assert torch.equal(one[0], other[0])


values = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, float("inf"), float("-inf")]), min_size=1)


@pytest.mark.parametrize("sorted_up_to", [0, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@settings(max_examples=30)
@given(values=values, k=st.integers(1, 9))
def test_top_k_equals_stable_sort(sorted_up_to, dtype, values, k):
    x = torch.tensor([[values], [values[::-1]]], dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(precision, "SORTED", sorted_up_to)
        found = precision._top_k_asynchronous(x, k)
    expected = torch.sort(x, dim=-1, descending=True, stable=True)
    assert torch.equal(found[1], expected[1][..., :k]) and torch.equal(found[0], expected[0][..., :k])
    on_cpu = precision.stable_top_k(x, k)[1]  # the same set, equal values in any order
    assert torch.equal(found[1].sort().values, on_cpu.sort().values)
