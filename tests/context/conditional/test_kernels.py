"""Kernels of attention to selected sentences that are available here, against the loop reference."""

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional.kernels import KERNELS, base, kernel_for
from docnmt_fairseq.context.conditional.selection import Selection
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.native import build, library
from tests.reference import attention as reference
from tests.support.comparison import assert_same
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism
from tests.support.selection import all_select, attended, keeping, random_inputs
from tests.support.trees import found_by_steps, tree_inputs

pytestmark = pytest.mark.cpu


def serving(name):
    kernel = KERNELS[name]
    if kernel.serves(torch.device("cpu"), torch.float32):
        return name
    return pytest.param(name, marks=pytest.mark.skip(reason=f"{name}: {kernel.missing() or 'not for CPUs'}"))


every_kernel = pytest.mark.parametrize("name", [serving(name) for name in sorted(KERNELS)])


def compare(name, layout, kept, own=False, d_k=3, dtype=torch.double, atol=1e-9):
    inputs = random_inputs(layout, d_k, dtype=dtype)
    fast = attended(*inputs, layout, keeping(kept), own, kernel=name)
    slow = reference.conditional_attention(*inputs, layout, kept, own)
    assert_same(fast, slow, inputs, atol)


@every_kernel
@settings(max_examples=12)
@given(layouts(), st.data(), st.booleans())
def test_equals_loop_reference(name, layout, data, own):
    kept = np.array([data.draw(st.integers(1, int(n) + 1)) for n in layout.sentences.lengths])
    compare(name, layout, kept, own)


@every_kernel
@pytest.mark.parametrize("d_k", [1, 17, pytest.param(64, marks=pytest.mark.slow)])
def test_head_widths(name, d_k):
    rng = np.random.default_rng(0)
    compare(name, make_layout(rng.integers(1, 9, 8), [7, 1]), np.array([3, 1]), d_k=d_k, dtype=torch.float32, atol=1e-4)


@every_kernel
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_gradcheck(name, dropout):
    layout = make_layout([2, 1, 3, 2], [3, 1])

    def seeded(*inputs):
        torch.manual_seed(3)
        return attended(*inputs, layout, keeping([2, 1]), dropout=dropout, kernel=name)

    assert torch.autograd.gradcheck(seeded, random_inputs(layout))


@every_kernel
def test_dropout_keeps_the_mean_and_depends_on_the_seed(name):
    layout = make_layout([3] * 6, [6])
    inputs = [x.detach() for x in random_inputs(layout)]

    def run(dropout):
        return attended(*inputs, layout, keeping([2]), dropout=dropout, kernel=name)

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
    rounded = attended(*inputs, layout, keeping([2]), kernel=name)
    assert rounded.dtype == torch.bfloat16
    exact = attended(*[x.float() for x in inputs], layout, keeping([2]), kernel="dense")
    torch.testing.assert_close(rounded.float(), exact, atol=0.05, rtol=0.05)


@every_kernel
@settings(max_examples=15)
@given(layouts(max_sentences=24, max_words=3), st.data())
def test_choice_of_the_best_and_of_the_first_among_equals(name, layout, data):
    """Scores are small integers, so that many are equal."""
    lengths = layout.sentences.lengths
    kept = np.array([data.draw(st.integers(1, min(18, int(n) + 1))) for n in lengths])
    generator = torch.Generator().manual_seed(int(lengths.sum()))
    q = torch.randint(1, 3, (layout.tokens.total, 2, 1), generator=generator).double()
    k = torch.randint(-2, 3, (layout.tokens.rows, 2, 1), generator=generator).double()
    chosen = KERNELS[name].choose(q, k, layout, all_select(kept)).split(layout.document_tokens.lengths.tolist())
    tokens = q.split(layout.document_tokens.lengths.tolist())
    for document, (first, n) in enumerate(zip(layout.sentences.offsets, lengths)):
        for w, head in np.ndindex(len(tokens[document]), 2):
            relevance = [float(tokens[document][w, head] @ key) for key in k[first : first + n, head]]
            best = reference.keep_top_t([torch.tensor(r) for r in relevance], int(kept[document]))
            found = [row - first for row in chosen[document][w, head].tolist() if row >= 0]
            assert sorted(found) == sorted(best)


@every_kernel
@settings(max_examples=12)
@given(layouts(max_sentences=14, max_words=3), st.data())
def test_tree_walk_equals_the_reference(name, layout, data):
    """Keys are small integers, so that many scores are equal; some documents may not select."""
    lengths = layout.sentences.lengths
    kept = np.array([data.draw(st.integers(1, min(18, int(n) + 1))) for n in lengths])
    documents = data.draw(st.sampled_from([range(len(lengths)), np.flatnonzero(lengths == lengths.max())]))
    key = keeping(kept, documents)
    q, keys, trees = tree_inputs(layout, heads=2, d_k=3, whole=True)
    found = KERNELS[name].choose_in_tree(q, keys, layout, key)
    expected = found_by_steps(layout, q, keys, trees, kept, "level")
    for place, head in np.ndindex(found.shape[:2]):
        rows = sorted(expected[int(layout.plan(key).items[place]), head])
        assert found[place, head].tolist() == rows + [-1] * (found.size(2) - len(rows))


@every_kernel
def test_empty_places_have_no_weight(name):
    layout, kernel = make_layout([2, 3, 1, 2], [4]), KERNELS[name]
    q, k, v = random_inputs(layout)[:3]
    sentence = torch.randint(4, (8, 2, 1), generator=torch.Generator().manual_seed(0))
    items, scores, none = torch.arange(8), torch.randn(8, 2, 1, dtype=torch.double), torch.full_like(sentence, -1)
    expected = kernel.attend(q, k, v, layout, Selection(all_select([1]), items, sentence, scores), 0.0)
    sentence = torch.cat([none, sentence, none], dim=-1)
    scores = torch.cat([none * torch.inf, scores, none * torch.inf], dim=-1).requires_grad_()
    found = kernel.attend(q, k, v, layout, Selection(all_select([3]), items, sentence, scores), 0.0)
    torch.testing.assert_close(found, expected)
    of_scores = torch.autograd.grad((found**2).sum(), scores)[0]
    assert (of_scores[..., [0, 2]] == 0).all()


@every_kernel
def test_results_do_not_depend_on_strides(name):
    layout = make_layout([3, 2, 4, 1], [4])
    inputs = [x.detach() for x in random_inputs(layout, 4)]
    strided = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in inputs]
    expected = attended(*inputs, layout, keeping([2]), kernel=name)
    torch.testing.assert_close(attended(*strided, layout, keeping([2]), kernel=name), expected)
    assert torch.equal(attended(*inputs, layout, keeping([2]), kernel=name), expected)


@pytest.mark.skipif(library.missing() is not None, reason=str(library.missing()))
def test_compiled_kernel_is_the_same_for_every_number_of_threads():
    layout = make_layout(np.random.default_rng(0).integers(1, 30, 60), [40, 20])
    results, threads = [], torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            inputs = random_inputs(layout, 16, dtype=torch.float32)
            out = attended(*inputs, layout, keeping([4, 4]), kernel="compiled")
            results.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler")
def test_compiled_kernel_is_preferred():
    assert library.missing() is None
    assert kernel_for("auto", torch.zeros(1)) is KERNELS["compiled"]


def test_missing_compiler_is_logged_once(monkeypatch, caplog):
    def no_library():
        raise build.BuildError("no C++ compiler found")

    monkeypatch.setattr(library, "library", no_library)
    library.missing.cache_clear()
    base._warn_once.cache_clear()
    try:
        for _ in range(2):
            assert kernel_for("auto", torch.zeros(1)) is KERNELS["torch"]
        assert sum("no C++ compiler found" in record.message for record in caplog.records) == 1
        with pytest.raises(InputError):
            kernel_for("compiled", torch.zeros(1))
    finally:
        library.missing.cache_clear()


@pytest.mark.parametrize("name", ["conditional", "tree"])
def test_tied_query_key_initialisation(name):
    for tied in (False, True):
        built = build_mechanism(name, embed_dim=6, heads=2, head_dim=3, context_tie_qk_init=tied)
        assert torch.equal(built.k_proj.weight, built.q_proj.weight) == tied
        assert built.k_proj.weight is not built.q_proj.weight


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-9), (torch.float32, 1e-4)])
def test_gpu_equals_cpu(name, dtype, tolerance):
    gpu, layout, kept = torch.device("cuda"), make_layout([7, 1, 12, 30, 4, 9, 2, 5, 3], [6, 3]), keeping([2, 2])
    if not KERNELS[name].serves(gpu, dtype):
        pytest.skip("not on GPUs")
    results = []
    for device, kernel in ((torch.device("cpu"), "dense"), (gpu, name)):
        inputs = [x.detach().to(device).requires_grad_() for x in random_inputs(layout, 8, dtype=dtype)]
        out = attended(*inputs, layout.to(device), kept, kernel=kernel)
        results.append([x.cpu() for x in (out, *torch.autograd.grad(out.sin().sum(), inputs))])
    torch.testing.assert_close(*results, atol=tolerance, rtol=tolerance)
