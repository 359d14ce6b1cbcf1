"""Kernel ``torch`` on small documents, on large documents, and on both in one batch, against the loop reference."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from docnmt_fairseq.context.conditional.kernels import KERNELS, grouped_attention
from docnmt_fairseq.context.conditional.kernels import base as pytorch_kernel
from tests.reference import attention as reference
from tests.support.comparison import assert_same
from tests.support.documents import layouts, make_layout
from tests.support.marks import slow_except
from tests.support.selection import all_select, attended, keeping, random_inputs

HEADS, D_K = 3, 5
SIZES = {"small": 10**6, "large": 0, "both": 4}  # tokens per kept sentence up to which a document counts as small


@pytest.fixture(params=slow_except({"both"}, SIZES))
def size(request, monkeypatch):
    """Every step is done in several chunks, also for the tests' small documents."""
    monkeypatch.setattr(pytorch_kernel, "TOKENS_PER_PLACE", SIZES[request.param])
    monkeypatch.setattr(grouped_attention, "BLOCK", 4)
    monkeypatch.setattr(grouped_attention, "BUCKET_COST", 8)
    monkeypatch.setattr(grouped_attention, "CHUNK", 300)
    monkeypatch.setattr(pytorch_kernel, "CHUNK", 20)
    monkeypatch.setattr(pytorch_kernel, "PASSES", 6)
    return request.param


def run(inputs, layout, kept, own=False, dropout=0.0, seed=None, kernel="torch"):
    if seed is not None:
        torch.manual_seed(seed)
    return attended(*inputs, layout, keeping(kept), own, dropout, kernel)


@settings(max_examples=10)
@given(layouts(max_words=9), st.data(), st.booleans())
def test_equals_loop_reference(size, layout, data, own):
    kept = np.array([data.draw(st.integers(1, int(n))) for n in layout.sentences.lengths])
    inputs = random_inputs(layout, D_K, HEADS)
    slow = reference.conditional_attention(*inputs, layout, kept, own)
    assert_same(run(inputs, layout, kept, own), slow, inputs, 1e-9)


@pytest.mark.parametrize("options", [{"own": True}, {"dropout": 0.4, "seed": 3}], ids=["own", "dropout"])
def test_gradcheck(size, options):
    layout = make_layout([2, 1, 3, 2, 6, 1], [3, 1, 2])
    kept, inputs = np.array([2, 1, 1]), random_inputs(layout, D_K, HEADS)
    assert torch.autograd.gradcheck(lambda *x: run(x, layout, kept, **options), inputs, fast_mode=True)


def test_dropout_of_each_weight(size):
    """With the identity as values, the output is the weights."""
    layout = make_layout([2, 3, 1, 4, 2], [5])
    inputs = [x.detach() for x in random_inputs(layout, 12, HEADS)]
    inputs[2] = torch.eye(12, dtype=torch.double)[:, None].expand(-1, HEADS, -1).contiguous()
    kept = np.array([3])
    clean = run(inputs, layout, kept)
    selected = clean > 0
    runs = torch.stack([run(inputs, layout, kept, dropout=0.25, seed=seed) for seed in range(200)])
    ratios = runs[:, selected] / clean[selected]
    dropped = ratios == 0
    torch.testing.assert_close(ratios, (~dropped).double() / 0.75)
    assert (runs[:, ~selected] == 0).all()
    share = dropped.double().mean(0)
    assert (share - 0.25).abs().max() < 0.15
    assert abs(float(share.mean()) - 0.25) < 0.01


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_are_computed_in_float32(size, dtype):
    """The same sentences are selected, and only the result is rounded."""
    layout = make_layout(np.random.default_rng(1).integers(1, 9, 20), [12, 8])
    halves = [x.detach().requires_grad_() for x in random_inputs(layout, 16, HEADS, dtype)]
    floats = [x.detach().float().requires_grad_() for x in halves]
    kept, precision = np.array([3, 2]), {"atol": 0.05, "rtol": 0.05}
    outputs = [run(x, layout, kept) for x in (halves, floats)]
    assert outputs[0].dtype == dtype
    torch.testing.assert_close(outputs[0].float(), outputs[1], **precision)
    chosen = [KERNELS["torch"].choose(*x[3:], layout, all_select(kept)) for x in (halves, floats)]
    assert torch.equal(*chosen)
    gradients = [torch.autograd.grad(output.sum(), x) for output, x in zip(outputs, (halves, floats))]
    for of_half, of_float in zip(*gradients):
        assert of_half.dtype == dtype
        torch.testing.assert_close(of_half.float(), of_float, **precision)


def test_autocast_does_not_change_selection(size):
    layout = make_layout(np.random.default_rng(1).integers(1, 9, 20), [12, 8])
    inputs, kept = random_inputs(layout, D_K, HEADS, torch.float32), np.array([3, 2])
    with torch.autocast("cpu", torch.bfloat16):
        cast = run(inputs, layout, kept)
    torch.testing.assert_close(cast, run(inputs, layout, kept))


class LargestTensor(TorchDispatchMode):
    """Records the number of elements of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, torch.Tensor):
                self.elements = max(self.elements, x.numel())
        return result


def test_no_token_by_token_matrix():
    layout = make_layout([25] * 100, [100])
    inputs, kept = random_inputs(layout, D_K, HEADS, torch.float32), np.array([2])
    with LargestTensor() as largest:
        torch.autograd.grad(run(inputs, layout, kept).sum(), inputs)
    assert 0 < largest.elements < layout.tokens.total**2 / 10
    with LargestTensor() as largest:
        run(inputs, layout, kept, kernel="dense")
    assert largest.elements >= layout.tokens.total**2
