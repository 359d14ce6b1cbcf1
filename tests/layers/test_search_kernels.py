"""Kernels of the search, compiled and in PyTorch, against their definitions."""

import math

import pytest
import torch

from docnmt_fairseq.layers import search_kernels
from docnmt_fairseq.layers.search_kernels import attend_hypotheses, log_sum_exp
from docnmt_fairseq.native.library import missing

pytestmark = pytest.mark.cpu


@pytest.fixture(params=["compiled", "torch"])
def implementation(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(search_kernels, "missing", lambda: "no compiler")
    elif missing():
        pytest.skip(missing())
    return request.param


def attention_in_loops(q, k, v, seen):
    out = torch.zeros(*q.shape[:2], q.size(2) * q.size(3), dtype=torch.double)
    for s in range(len(q)):
        for hypothesis in range(q.size(1)):
            tokens = seen[s, hypothesis % seen.size(1)].nonzero().flatten().tolist()
            for head in range(q.size(2)):
                scores = [float(q[s, hypothesis, head].double() @ k[s, head, n].double()) for n in tokens]
                largest = max(scores)
                shares = [math.exp((score - largest) / math.sqrt(q.size(3))) for score in scores]
                found = sum(share * v[s, head, n].double() for share, n in zip(shares, tokens)) / sum(shares)
                out[s, hypothesis, head * q.size(3) : (head + 1) * q.size(3)] = found
    return out


def inputs(sentences, hypotheses, heads, dim, tokens, dtype=torch.float32, shared=False):
    generator = torch.Generator().manual_seed(dim + tokens)
    width = heads * dim
    q = torch.randn(sentences, hypotheses, 3 * width, generator=generator, dtype=dtype)[..., width : 2 * width]
    k, v = torch.randn(2, sentences, heads, tokens + 3, dim, generator=generator, dtype=dtype)[..., :tokens, :]
    seen = torch.rand(sentences, 1 if shared else hypotheses, tokens + 5, generator=generator) < 0.4
    seen[..., 0] = True
    return q.unflatten(-1, (heads, dim)), k, v, seen[..., :tokens]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("sizes", [(3, 4, 2, 64, 37), (2, 1, 3, 32, 1), (1, 5, 2, 48, 16)])
def test_attention_equals_softmax_in_loops(implementation, sizes, shared):
    given = inputs(*sizes, shared=shared)
    torch.testing.assert_close(attend_hypotheses(*given).double(), attention_in_loops(*given), rtol=1e-5, atol=1e-5)


def test_queries_may_have_any_strides(implementation):
    q, k, v, seen = inputs(5, 1, 2, 16, 9)
    strided = torch.empty(1, 5, 2, 16).transpose(0, 1).copy_(q)  # contiguous for PyTorch: any stride of one row is
    assert strided.is_contiguous() and strided.stride() != q.contiguous().stride()
    torch.testing.assert_close(attend_hypotheses(strided, k, v, seen), attend_hypotheses(q.contiguous(), k, v, seen))


@pytest.mark.parametrize("wanted", [0, 1, 2], ids="qkv")
def test_attention_has_gradients_when_needed(wanted):
    given = [part.clone() for part in inputs(2, 3, 2, 16, 9)]
    given[wanted].requires_grad_()
    (grad,) = torch.autograd.grad(attend_hypotheses(*given).square().sum(), given[wanted])
    assert grad.abs().sum() > 0


@pytest.mark.parametrize("value", [1e30, -1e30])
def test_masked_keys_and_values_do_not_matter(implementation, value):
    q, k, v, seen = inputs(2, 3, 2, 16, 9, shared=True)
    unseen = ~seen[:, 0, None, :, None]
    changed = [part.masked_fill(unseen, value) for part in (k, v)]
    assert torch.equal(attend_hypotheses(q, *changed, seen), attend_hypotheses(q, k.clone(), v.clone(), seen))


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_attention_is_the_same_for_every_number_of_threads():
    given, threads, found = inputs(9, 3, 2, 32, 20), torch.get_num_threads(), []
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(attend_hypotheses(*given))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


@pytest.mark.parametrize("vocabulary", [1, 37, 64, 32001])
@pytest.mark.parametrize("scale, shift", [(1, 0), (30, -500)])
def test_log_sum_exp(implementation, vocabulary, scale, shift):
    logits = scale * torch.randn(3, 2, vocabulary, generator=torch.Generator().manual_seed(vocabulary)) + shift
    expected = logits.double().exp().sum(-1, keepdim=True).log() if not shift else logits.double().logsumexp(-1, True)
    torch.testing.assert_close(log_sum_exp(logits).double(), expected, rtol=1e-6, atol=2e-6)


def test_log_sum_exp_has_gradients_when_needed():
    logits = torch.randn(2, 70, requires_grad=True)
    (grad,) = torch.autograd.grad(log_sum_exp(logits).sum(), logits)
    torch.testing.assert_close(grad, logits.softmax(-1))
