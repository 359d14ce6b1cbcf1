import pytest
import torch

from docnmt_fairseq.layers.base import ContextGate
from tests.reference import memory as reference
from tests.support.comparison import PRECISIONS, assert_same


def states(dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(5, 6, dtype=dtype, requires_grad=True) for _ in range(2)]


@PRECISIONS
def test_source_and_context_are_weighed_feature_by_feature(dtype, tolerance):
    gate, (source, context) = ContextGate(6).to(dtype), states(dtype)
    slow = torch.stack(reference.gate(gate, source, context))
    assert_same(gate(source, context), slow, [source, context, *gate.parameters()], tolerance)


@PRECISIONS
def test_the_scale_of_one_is_the_formula(dtype, tolerance):
    gate, (source, context) = ContextGate(6, zero_init=True).to(dtype), states(dtype)
    gate.scale.data.fill_(1)
    torch.testing.assert_close(
        gate(source, context), torch.stack(reference.gate(gate, source, context)), atol=tolerance, rtol=tolerance
    )


def test_a_fresh_gate_is_the_identity_and_learns():
    gate, (source, context) = ContextGate(6, zero_init=True).double(), states()
    out = gate(source, context)
    assert torch.equal(out, source)
    out.sin().sum().backward()
    assert gate.scale.grad.abs() > 0


@pytest.mark.parametrize("zero_init", [False, True])
def test_words_without_context_are_unchanged_whatever_stands_there(zero_init):
    gate, (source, context) = ContextGate(6, zero_init).double(), states()
    reached = torch.tensor([False, True, True, False, True])
    garbage = torch.where(reached[:, None], context, torch.full_like(context, 1e9))
    out = gate(source, garbage, reached)
    assert torch.equal(out[~reached], source[~reached])
    torch.testing.assert_close(out[reached], gate(source, context)[reached])
    out.sum().backward()
    assert torch.equal(source.grad[~reached], torch.ones_like(source.grad[~reached]))
    assert context.grad[~reached].eq(0).all()
