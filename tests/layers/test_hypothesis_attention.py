"""Attention of hypotheses is the plain softmax over what each sees, compiled or not."""

import math

import pytest
import torch

from docnmt_fairseq.layers import hypothesis_attention
from docnmt_fairseq.layers.hypothesis_attention import attend_hypotheses
from docnmt_fairseq.native.library import missing


def in_loops(q, k, v, seen):
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


@pytest.fixture(params=["compiled", "torch"])
def way(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(hypothesis_attention, "missing", lambda: "no compiler")
    elif missing():
        pytest.skip(missing())
    return request.param


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("sizes", [(3, 4, 2, 64, 37), (2, 1, 3, 32, 1), (1, 5, 2, 48, 16), (2, 2, 2, 16, 33)])
def test_it_is_the_plain_softmax_over_what_is_seen(way, sizes, shared):
    given = inputs(*sizes, shared=shared)
    torch.testing.assert_close(attend_hypotheses(*given).double(), in_loops(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes, dtype", [((2, 3, 2, 5, 9), torch.float32), ((2, 3, 2, 16, 9), torch.float64)])
def test_what_the_compiled_kernel_does_not_take_goes_another_way(sizes, dtype):
    given = inputs(*sizes, dtype=dtype)
    torch.testing.assert_close(attend_hypotheses(*given).double(), in_loops(*given), rtol=1e-5, atol=1e-5)


def test_queries_may_have_any_strides(way):
    q, k, v, seen = inputs(5, 1, 2, 16, 9)
    turned = torch.empty(1, 5, 2, 16).transpose(0, 1).copy_(q)  # contiguous to PyTorch, whatever a stride of one row is
    assert turned.is_contiguous() and turned.stride() != q.contiguous().stride()
    torch.testing.assert_close(attend_hypotheses(turned, k, v, seen), attend_hypotheses(q.contiguous(), k, v, seen))


@pytest.mark.parametrize("wanted", ["q", "k", "v"])
def test_where_gradients_are_wanted_there_are_some(wanted):
    *parts, seen = inputs(2, 3, 2, 16, 9)
    given = dict(zip("qkv", (part.clone() for part in parts)))
    given[wanted].requires_grad_()
    (grad,) = torch.autograd.grad(attend_hypotheses(**given, seen=seen).square().sum(), given[wanted])
    assert grad.abs().sum() > 0


def test_extreme_scores_do_not_overflow(way):
    q, k, v, seen = inputs(2, 3, 2, 16, 9)
    q, k = q * 1e3, k * 1e3
    expected = in_loops(q, k, v, seen)
    torch.testing.assert_close(attend_hypotheses(q, k, v, seen).double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [1e30, -1e30])
def test_what_is_not_seen_may_be_any_number(way, number):
    q, k, v, seen = inputs(2, 3, 2, 16, 9, shared=True)
    unseen = ~seen[:, 0, None, :, None]
    assert unseen.any()
    of_others = [part.masked_fill(unseen, number) for part in (k, v)]
    assert torch.equal(attend_hypotheses(q, *of_others, seen), attend_hypotheses(q, k.clone(), v.clone(), seen))


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_every_number_of_threads_gives_the_same():
    given, threads = inputs(9, 3, 2, 32, 20), torch.get_num_threads()
    try:
        found = []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(attend_hypotheses(*given))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
