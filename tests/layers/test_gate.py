"""Context gate."""

import pytest
import torch

from docnmt_fairseq.layers.base import ContextGate
from tests.reference import memory as reference
from tests.support.comparison import PRECISIONS, assert_same


def states(dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(5, 6, dtype=dtype, requires_grad=True) for _ in range(2)]


@PRECISIONS
def test_gate_equals_its_equation(dtype, tolerance):
    gate, (source, context) = ContextGate(6).to(dtype), states(dtype)
    slow = torch.stack(reference.gate(gate, source, context))
    assert_same(gate(source, context), slow, [source, context, *gate.parameters()], tolerance)


@PRECISIONS
def test_scale_of_one_equals_the_equation(dtype, tolerance):
    gate, (source, context) = ContextGate(6, zero_init=True).to(dtype), states(dtype)
    gate.scale.data.fill_(1)
    torch.testing.assert_close(
        gate(source, context), torch.stack(reference.gate(gate, source, context)), atol=tolerance, rtol=tolerance
    )


def test_zero_initialisation_is_the_identity_and_learns():
    gate, (source, context) = ContextGate(6, zero_init=True).double(), states()
    out = gate(source, context)
    assert torch.equal(out, source)
    out.sin().sum().backward()
    assert gate.scale.grad.abs() > 0


@pytest.mark.parametrize("zero_init", [False, True])
def test_tokens_without_context_are_unchanged(zero_init):
    gate, (source, context) = ContextGate(6, zero_init).double(), states()
    has_context = torch.tensor([False, True, True, False, True])
    arbitrary = torch.where(has_context[:, None], context, torch.full_like(context, 1e9))
    out = gate(source, arbitrary, has_context)
    assert torch.equal(out[~has_context], source[~has_context])
    torch.testing.assert_close(out[has_context], gate(source, context)[has_context])
    out.sum().backward()
    assert torch.equal(source.grad[~has_context], torch.ones_like(source.grad[~has_context]))
    assert context.grad[~has_context].eq(0).all()
