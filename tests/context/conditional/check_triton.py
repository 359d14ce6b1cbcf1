"""Kernel ``triton`` against kernel ``dense`` in float64, on a GPU or under Triton's interpreter on a CPU.

Run by test_triton.py in its own process, because the interpreter must be enabled before Triton is imported.
"""

import math

import numpy as np
import pytest
import torch

from docnmt_fairseq.context.conditional.kernels import KERNELS
from docnmt_fairseq.context.conditional.kernels.triton import plans
from docnmt_fairseq.context.conditional.kernels.triton.plans import interpreted
from tests.support.documents import make_layout
from tests.support.selection import all_select, attended, keeping
from tests.support.trees import tree_inputs

DEVICE = torch.device("cpu" if interpreted() else "cuda")
HEADS = 2
TOLERANCES = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}  # relative to the norm


def layout_of(documents, longest, seed=0):
    """Ragged documents with these numbers of sentences, some of one token."""
    lengths = np.random.default_rng(seed).integers(1, longest + 1, sum(documents))
    lengths[-1] = longest
    return make_layout(lengths, documents)


def random_inputs(layout, dtype, d_k, seed=0):
    generator = torch.Generator().manual_seed(seed)
    rows = [layout.tokens.total] * 4 + [layout.tokens.rows]
    return [torch.randn(n, HEADS, d_k, generator=generator).to(dtype) for n in rows]


def attention(kernel, inputs, layout, key, own=False, dropout=0.0):
    return attended(*inputs, layout, key, own, dropout, kernel)


def results(call, inputs, dtype, device):
    """Output and gradients on a device and in a type."""
    leaves = [x.to(device, dtype).requires_grad_() for x in inputs]
    out = call(leaves)
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(7)).to(inputs[0].dtype)
    return [out, *torch.autograd.grad(out, leaves, weight.to(device, dtype))]


def assert_close(fast, exact, dtype):
    for name, a, b in zip(("output", "q", "k", "v", "q_s", "k_s"), fast, exact):
        assert a.dtype == dtype
        error = (a.double().cpu() - b).norm() / b.norm()
        assert error < TOLERANCES[dtype], f"{name}: {error:.1e}"


def compare(layout, key, dtype, d_k=16, own=False, seed=0):
    inputs = random_inputs(layout, dtype, d_k, seed)
    on_device = layout.to(DEVICE)
    exact = results(lambda x: attention("dense", x, layout, key, own), inputs, torch.double, "cpu")
    fast = results(lambda x: attention("triton", x, on_device, key, own), inputs, dtype, DEVICE)
    assert_close(fast, exact, dtype)
    queries, keys = inputs[3:]
    expected = KERNELS["dense"].choose(queries.double(), keys.double(), layout, key)
    chosen = KERNELS["triton"].choose(queries.to(DEVICE), keys.to(DEVICE), on_device, key)
    assert torch.equal(chosen.cpu(), expected)
    return fast


@pytest.fixture
def small_items(monkeypatch):
    """Sentences are split among programs from 16 queries on."""
    monkeypatch.setattr(plans, "MIN_ITEM", 16)
    monkeypatch.setattr(plans, "QUERIES_PER_TOKEN", 0)


def test_output_gradients_and_choice(small_items):
    """With documents of one sentence, which do not select, different t, and sentences of two blocks of keys."""
    layout = make_layout([36, 2, 5, 1, 7, 1, 3, 4, 2, 6], [4, 1, 5])
    compare(layout, keeping([3, 1, 2]), torch.float32, own=True)


@pytest.mark.parametrize("t", [4, 5])  # the program has 4 or 8 places
def test_ties_keep_the_first_sentences(t):
    layout = make_layout([1] * 70, [70])
    q = torch.tensor([-1.0, 0.0, 1.0, 2.0])[torch.arange(70) % 4].view(70, 1, 1)
    k = torch.randint(-1, 2, (70, 1, 1), generator=torch.Generator().manual_seed(0)).float()
    expected = KERNELS["dense"].choose(q, k, layout, all_select([t]))
    chosen = KERNELS["triton"].choose(q.to(DEVICE), k.to(DEVICE), layout.to(DEVICE), all_select([t]))
    assert torch.equal(chosen.cpu(), expected)


def compare_walks(documents, kept, d_k=16, dtype=torch.float32, whole=False, documents_that_select=None):
    layout = layout_of(documents, 2)
    q, keys, _ = tree_inputs(layout, HEADS, d_k, whole=whole)
    key = keeping(kept, range(len(kept)) if documents_that_select is None else documents_that_select)
    q, keys = q.to(dtype), keys.to(dtype)
    expected = KERNELS["torch"].choose_in_tree(q.double(), keys.double(), layout, key)
    found = KERNELS["triton"].choose_in_tree(q.to(DEVICE), keys.to(DEVICE), layout.to(DEVICE), key)
    assert torch.equal(found.cpu(), expected)


def test_tree_walks():
    """Scores are small integers, so that many are equal."""
    compare_walks([13, 1, 6], [3, 1, 5], whole=True)


def test_zeros_of_both_signs_are_equal():
    """For a query of zeros, scores of negative keys are −0, which equals 0."""
    layout = make_layout([1] * 13, [13])
    _, keys, _ = tree_inputs(layout, HEADS, 16)
    signs = torch.tensor([-1.0, 1.0])[torch.arange(len(keys)) % 2].view(-1, 1, 1)
    keys, q = keys.abs() * signs, torch.zeros(13, HEADS, 16)
    expected = KERNELS["torch"].choose_in_tree(q.double(), keys, layout, keeping([3]))
    found = KERNELS["triton"].choose_in_tree(q.to(DEVICE), keys.float().to(DEVICE), layout.to(DEVICE), keeping([3]))
    assert torch.equal(found.cpu(), expected)
    assert expected.flatten(1).unique(dim=0).tolist() == [[0, 1, 2] * HEADS]


def weights_of(inputs, layout, key, kernel, dropout=0.0):
    """Attention weights of every token, [M, H, N]: the output for one-hot values."""
    one_hot = torch.eye(layout.tokens.total, inputs[0].size(-1), dtype=inputs[0].dtype, device=inputs[0].device)
    values = one_hot[:, None].expand_as(inputs[2])
    return attention(kernel, [*inputs[:2], values, *inputs[3:]], layout, key, dropout=dropout)[..., : len(values)]


def test_dropout_drops_the_same_weights_in_the_backward_pass(small_items):
    layout, key, p = make_layout([36, 5, 1, 9, 4, 7], [6]), keeping([3]), 0.3
    inputs = random_inputs(layout, torch.float32, 64)
    on_device = [x.to(DEVICE) for x in inputs]
    torch.manual_seed(3)
    dropped = weights_of(on_device, layout.to(DEVICE), key, "triton", p).cpu().double()
    clean = weights_of([x.double() for x in inputs], layout, key, "dense")
    factors = (dropped > 0).double() / (1 - p)
    torch.testing.assert_close(dropped, clean * factors, atol=1e-6, rtol=1e-4)
    share = float((factors > 0)[clean > 0].double().mean())
    assert abs(share - (1 - p)) < 4 * math.sqrt(p * (1 - p) / int((clean > 0).sum()))

    def expected(x):
        return torch.einsum("mhn,nhd->mhd", weights_of(x, layout, key, "dense") * factors, x[2])

    def fast(x):
        torch.manual_seed(3)
        return attention("triton", x, layout.to(DEVICE), key, dropout=p)

    exact = results(expected, inputs, torch.double, "cpu")
    assert_close(results(fast, inputs, torch.float32, DEVICE), exact, torch.float32)
    torch.manual_seed(4)
    other = weights_of(on_device, layout.to(DEVICE), key, "triton", p).cpu()
    assert not torch.equal(other > 0, dropped > 0)


def test_large_t_falls_back_to_pytorch():
    compare(make_layout([1] * 18, [18]), keeping([17]), torch.float32)


@pytest.mark.slow
def test_sentences_with_more_queries_than_one_program_takes():
    """With the real block sizes; results are the same in every run."""
    layout, key = make_layout([3, *[16] * 20], [21]), keeping([2])
    inputs = random_inputs(layout, torch.float32, 16)
    inputs[3] = inputs[3].abs()
    inputs[4][0] = 1.0  # most queries keep the first sentence
    chosen = KERNELS["dense"].choose(*inputs[3:], layout, key)
    assert (chosen == 0).any(-1).sum(0).min() > plans.MIN_ITEM
    assert layout.plan(plans.Work()).split
    exact = results(lambda x: attention("dense", x, layout, key), inputs, torch.double, "cpu")
    fast, again = (
        results(lambda x: attention("triton", x, layout.to(DEVICE), key), inputs, torch.float32, DEVICE)
        for _ in range(2)
    )
    assert_close(fast, exact, torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(fast, again))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "d_k", "t"),
    [(torch.bfloat16, 64, 4), (torch.float16, 32, 3), (torch.float32, 128, 2), (torch.float32, 17, 16)],
    ids=str,
)
def test_types_head_widths_and_numbers_of_sentences(dtype, d_k, t):
    compare(layout_of([18, 5] if t == 16 else [9, 5], 6), keeping([t, 3]), dtype, d_k, own=t % 2 == 1)


@pytest.mark.slow
def test_long_documents():
    layout = make_layout([1] * 300, [300])
    q, k = (x.to(torch.bfloat16) for x in random_inputs(layout, torch.float32, 32)[3:])
    expected = KERNELS["dense"].choose(q.double(), k.double(), layout, keeping([5]))
    chosen = KERNELS["triton"].choose(q.to(DEVICE), k.to(DEVICE), layout.to(DEVICE), keeping([5]))
    assert torch.equal(chosen.cpu(), expected)
    compare_walks([75, 9], [5, 3])
    compare_walks([40, 2], [2, 2], 64, torch.bfloat16, documents_that_select=[0])
