"""Every kernel of attention to selected sentences that is available here, against the loop reference."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.kernels import KERNELS, base, kernel_for
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.native import build, library
from tests.reference import attention as reference
from tests.support.comparison import assert_same
from tests.support.documents import layouts, make_layout
from tests.support.selection import all_select, keeping
from tests.support.trees import found_by_steps, tree_inputs

pytestmark = pytest.mark.cpu

NAMES = KERNELS.names()


def every_kernel(test):
    def serving(name):
        if not KERNELS[name]().serves(torch.device("cpu"), torch.float32):
            return pytest.param(
                name, marks=pytest.mark.skip(reason=f"{name}: {KERNELS[name]().missing() or 'not for CPUs'}")
            )
        return name

    return pytest.mark.parametrize("name", [serving(name) for name in NAMES])(test)


def random_inputs(layout, d_k=3, heads=2, dtype=torch.double):
    generator = torch.Generator().manual_seed(0)
    rows = [layout.tokens.total] * 4 + [layout.tokens.rows]
    inputs = [torch.randn(n, heads, d_k, generator=generator, dtype=torch.double).to(dtype) for n in rows]
    return [x.requires_grad_() for x in inputs]


def compare(name, layout, kept, own=False, d_k=3, dtype=torch.double, atol=1e-9):
    inputs = random_inputs(layout, d_k, dtype=dtype)
    fast = conditional_attention(*inputs, layout, keeping(kept), own, kernel=name)
    slow = reference.conditional_attention(*inputs, layout, kept, own)
    assert_same(fast, slow, inputs, atol)


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler")
def test_compiled_kernel_is_preferred():
    assert library.missing() is None
    assert type(kernel_for("auto", torch.zeros(1))) is KERNELS["compiled"]


@every_kernel
@settings(max_examples=20)
@given(layouts(), st.data(), st.booleans())
def test_equals_loop_reference(name, layout, data, own):
    kept = np.array([data.draw(st.integers(1, int(n) + 1)) for n in layout.sentences.lengths])
    compare(name, layout, kept, own)


@every_kernel
@pytest.mark.parametrize("d_k", [1, 8, 17, 64])
def test_head_widths(name, d_k):
    rng = np.random.default_rng(0)
    compare(name, make_layout(rng.integers(1, 9, 8), [7, 1]), np.array([3, 1]), d_k=d_k, dtype=torch.float32, atol=1e-4)


@pytest.mark.slow
@every_kernel
def test_long_sentences_and_many_kept(name):
    compare(name, make_layout([70, 1, 40, *[2] * 19], [22]), np.array([18]))


@every_kernel
def test_gradcheck(name):
    layout = make_layout([2, 1, 3, 2], [3, 1])
    kept = np.array([2, 1])
    assert torch.autograd.gradcheck(
        lambda *x: conditional_attention(*x, layout, keeping(kept), kernel=name), random_inputs(layout)
    )


@every_kernel
def test_gradcheck_under_dropout(name):
    layout = make_layout([2, 3, 1, 2], [4])

    def seeded(*inputs):
        torch.manual_seed(3)
        return conditional_attention(*inputs, layout, keeping([2]), dropout=0.4, kernel=name)

    assert torch.autograd.gradcheck(seeded, random_inputs(layout))


@every_kernel
def test_dropout_of_all_weights_gives_zeros(name):
    layout = make_layout([2, 3, 1, 2], [4])
    inputs = random_inputs(layout)
    dropped = conditional_attention(*inputs, layout, keeping([2]), dropout=1.0, kernel=name)
    for value in (dropped, *torch.autograd.grad(dropped.sum(), inputs)):
        assert torch.equal(value, torch.zeros_like(value))


@every_kernel
def test_dropout_keeps_the_mean_and_depends_on_the_seed(name):
    layout = make_layout([3] * 6, [6])
    inputs = [x.detach() for x in random_inputs(layout)]

    def run(dropout):
        return conditional_attention(*inputs, layout, keeping([2]), dropout=dropout, kernel=name)

    torch.manual_seed(0)
    noisy = torch.stack([run(0.3) for _ in range(1000)])
    torch.manual_seed(0)
    assert torch.equal(run(0.3), noisy[0])
    assert not torch.equal(noisy[0], run(0.0))
    torch.testing.assert_close(noisy.mean(0), run(0.0), atol=0.15, rtol=0.15)


@every_kernel
def test_bfloat16_is_close_to_float32(name):
    layout = make_layout([3, 2, 4, 1, 5], [5])
    inputs = [x.detach().bfloat16() for x in random_inputs(layout, 8)]
    rounded = conditional_attention(*inputs, layout, keeping([2]), kernel=name)
    assert rounded.dtype == torch.bfloat16
    exact = conditional_attention(*[x.float() for x in inputs], layout, keeping([2]), kernel="dense")
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)


@every_kernel
@settings(max_examples=30)
@given(layouts(max_sentences=24, max_words=3), st.data())
def test_choice_of_the_best_and_of_the_first_among_equals(name, layout, data):
    """Scores are small integers, so that many are equal."""
    lengths = layout.sentences.lengths
    kept = np.array([data.draw(st.integers(1, min(18, int(n) + 1))) for n in lengths])
    generator = torch.Generator().manual_seed(int(lengths.sum()))
    q = torch.randint(1, 3, (layout.tokens.total, 2, 1), generator=generator).double()
    k = torch.randint(-2, 3, (layout.tokens.rows, 2, 1), generator=generator).double()
    chosen = KERNELS[name]().choose(q, k, layout, all_select(kept)).split(layout.document_tokens.lengths.tolist())
    tokens = q.split(layout.document_tokens.lengths.tolist())
    for document, (first, n) in enumerate(zip(layout.sentences.offsets, lengths)):
        for w, head in np.ndindex(len(tokens[document]), 2):
            relevance = [float(tokens[document][w, head] @ key) for key in k[first : first + n, head]]
            best = reference.keep_top_t([torch.tensor(r) for r in relevance], int(kept[document]))
            found = [row - first for row in chosen[document][w, head].tolist() if row >= 0]
            assert sorted(found) == sorted(best)


@every_kernel
@settings(max_examples=20)
@given(layouts(max_sentences=14, max_words=3), st.data())
def test_tree_walk_equals_the_reference(name, layout, data):
    """Keys are small integers, so that many scores are equal; some documents may not select."""
    lengths = layout.sentences.lengths
    kept = np.array([data.draw(st.integers(1, min(18, int(n) + 1))) for n in lengths])
    documents = data.draw(st.sampled_from([range(len(lengths)), np.flatnonzero(lengths == lengths.max())]))
    key = keeping(kept, documents)
    q, keys, trees = tree_inputs(layout, heads=2, d_k=3, whole=True)
    found = KERNELS[name]().choose_in_tree(q, keys, layout, key)
    expected = found_by_steps(layout, q, keys, trees, kept, "level")
    for place, head in np.ndindex(found.shape[:2]):
        rows = sorted(expected[int(layout.plan(key).items[place]), head])
        assert found[place, head].tolist() == rows + [-1] * (found.size(2) - len(rows))


@every_kernel
def test_results_do_not_depend_on_strides(name):
    layout = make_layout([3, 2, 4, 1], [4])
    inputs = [x.detach() for x in random_inputs(layout, 4)]
    strided = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in inputs]
    expected = conditional_attention(*inputs, layout, keeping([2]), kernel=name)
    torch.testing.assert_close(conditional_attention(*strided, layout, keeping([2]), kernel=name), expected)
    assert torch.equal(conditional_attention(*inputs, layout, keeping([2]), kernel=name), expected)


def test_compiled_kernel_is_the_same_for_every_number_of_threads():
    if library.missing():
        pytest.skip(library.missing())
    layout = make_layout(np.random.default_rng(0).integers(1, 30, 60), [40, 20])
    results, threads = [], torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            inputs = random_inputs(layout, 16, dtype=torch.float32)
            out = conditional_attention(*inputs, layout, keeping([4, 4]), kernel="compiled")
            results.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_missing_compiler_is_logged_once(monkeypatch, caplog):
    def no_library():
        raise build.BuildError("no C++ compiler found")

    monkeypatch.setattr(library, "library", no_library)
    library.missing.cache_clear()
    base._warn_once.cache_clear()
    try:
        for _ in range(2):
            assert type(kernel_for("auto", torch.zeros(1))) is KERNELS["torch"]
        assert sum("no C++ compiler found" in record.message for record in caplog.records) == 1
        with pytest.raises(InputError, match="--context-kernel"):
            kernel_for("compiled", torch.zeros(1))
    finally:
        library.missing.cache_clear()
