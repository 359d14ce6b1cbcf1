"""The log-sum-exp of a vocabulary's logits is exact, whatever they are."""

import pytest
import torch

from docnmt_fairseq.layers import log_sums
from docnmt_fairseq.layers.log_sums import log_sum_exp
from docnmt_fairseq.native.library import missing


@pytest.fixture(params=["compiled", "torch"])
def way(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(log_sums, "missing", lambda: "no compiler")
    elif missing():
        pytest.skip(missing())
    return request.param


@pytest.mark.parametrize("vocabulary", [1, 37, 64, 1000, 32001])
@pytest.mark.parametrize("scale, shift", [(1, 0), (30, -500), (0.01, 1e4), (0, 3)])
def test_it_is_the_definition(way, vocabulary, scale, shift):
    logits = scale * torch.randn(3, 2, vocabulary, generator=torch.Generator().manual_seed(vocabulary)) + shift
    expected = logits.double().exp().sum(-1, keepdim=True).log() if not shift else logits.double().logsumexp(-1, True)
    torch.testing.assert_close(log_sum_exp(logits).double(), expected, rtol=1e-6, atol=2e-6)


def test_what_cannot_be_adds_nothing(way):
    logits = torch.randn(2, 70)
    logits[0, 3:60], logits[1] = -torch.inf, -torch.inf
    found = log_sum_exp(logits)
    torch.testing.assert_close(found[0, 0], torch.cat([logits[0, :3], logits[0, 60:]]).logsumexp(0))
    assert found[1, 0] == -torch.inf


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_are_summed_in_float32(dtype):
    logits = torch.randn(2, 5000).to(dtype)
    found = log_sum_exp(logits)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, logits.float().logsumexp(-1, keepdim=True))


def test_where_gradients_are_wanted_there_are_some():
    logits = torch.randn(2, 70, requires_grad=True)
    (grad,) = torch.autograd.grad(log_sum_exp(logits).sum(), logits)
    torch.testing.assert_close(grad, logits.softmax(-1))
