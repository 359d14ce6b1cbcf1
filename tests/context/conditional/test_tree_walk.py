"""TraverseTree: sentences that a walk finds and their cumulative relevance, against the reference."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional.kernels import KERNELS, tree_walk
from docnmt_fairseq.context.conditional.kernels.tree_walk import choose_in_tree
from docnmt_fairseq.context.conditional.tree import path_sums
from tests.support.documents import layouts, make_layout
from tests.support.selection import all_select, keeping
from tests.support.trees import found_by_steps, layout_of, tree_inputs

HEADS, D_K = 2, 3
SCORES = ("level", "cumulative")


def walked(keys, trees, score):
    return keys if score == "level" else path_sums(keys, trees)


def compare(layout, kept, score, documents=None):
    q, keys, trees = tree_inputs(layout, HEADS, D_K)
    key = all_select(kept) if documents is None else keeping(kept, documents)
    chosen = choose_in_tree(q, walked(keys, trees, score), layout, key)
    items = layout.plan(key).items
    relevance = KERNELS["torch"].score(q, path_sums(keys, trees), items, chosen)
    expected = found_by_steps(layout, q, keys, trees, kept, score)
    assert chosen.shape[0] == len(items)
    for place, token in enumerate(items.tolist()):
        for h in range(HEADS):
            rows = chosen[place, h].tolist()
            real = [row for row in rows if row >= 0]
            assert real == sorted(expected[token, h]) and rows == real + [-1] * (len(rows) - len(real))
            for row, r in zip(rows, relevance[place, h]):
                if row >= 0:
                    torch.testing.assert_close(r, expected[token, h][row], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dense_nodes", [0, 3, 256])
@settings(max_examples=8)
@given(layouts(max_sentences=14, max_words=2), st.data())
def test_walk_equals_the_reference(score, dense_nodes, layout, data):
    """With t per document; some documents do not select."""
    kept = np.array([data.draw(st.integers(1, int(n) + 2)) for n in layout.sentences.lengths])
    chosen = data.draw(st.lists(st.booleans(), min_size=len(kept), max_size=len(kept)).filter(any))
    with mock.patch.multiple(tree_walk, DENSE_NODES=dense_nodes, CHUNK=100):
        compare(layout, kept, score, np.flatnonzero(chosen))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dense_nodes", [0, 256])
def test_ties_keep_the_leftmost_nodes(score, dense_nodes):
    layout = layout_of(13, 2, 6)
    _, keys, trees = tree_inputs(layout, HEADS, D_K)
    keys = walked(torch.ones_like(keys), trees, score)
    q = torch.ones(21, HEADS, D_K, dtype=torch.double)
    with mock.patch.object(tree_walk, "DENSE_NODES", dense_nodes):
        chosen = choose_in_tree(q, keys, layout, all_select([3, 3, 3]))
    first = torch.tensor([0] * 13 + [13] * 2 + [15] * 6)[:, None, None]
    expected = (first + torch.arange(3)).repeat(1, HEADS, 1)
    expected[13:15, :, 2] = -1
    assert torch.equal(chosen, expected)


def test_half_types_are_walked_in_float32():
    layout = make_layout([2] * 20, [20])
    q, keys, _ = tree_inputs(layout, HEADS, D_K)
    q, keys, kept = q.bfloat16(), keys.bfloat16(), keeping([3])
    expected = choose_in_tree(q.float(), keys.float(), layout, kept)
    assert torch.equal(choose_in_tree(q, keys, layout, kept), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(choose_in_tree(q.float(), keys.float(), layout, kept), expected)
