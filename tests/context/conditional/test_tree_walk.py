"""TraverseTree: sentences that a walk finds and their cumulative relevance, against the reference."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional.kernels import KERNELS, tree_walk
from docnmt_fairseq.context.conditional.kernels.tree_walk import TreeWalk, Walks, choose_in_tree
from docnmt_fairseq.context.conditional.tree import SentenceTrees, path_sums
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
@pytest.mark.parametrize("n", [1, 3, 17, pytest.param(50, marks=pytest.mark.slow)])
def test_up_to_fifty_sentences(n, score):
    for t in (1, 4, n + 2):
        compare(layout_of(n), np.array([t]), score)


class RecordingWalk(TreeWalk):
    def keep_best(self, nodes, scores, height):
        kept = super().keep_best(nodes, scores, height)
        self.survivors = {**getattr(self, "survivors", {}), height: kept.flatten().tolist()}
        return kept


# Eleven sentences, keep 2, as in fig. 3, with d_k = 1 and q = 1, so that a key is a relevance score. The last leaf, the
# last node of height 1 and those of heights 2 and 3 are copies as in the text: leaf 10 = height 1 node 5;
# height 2 node 2 = height 3 node 1.
LEAVES = [2, 7, 9, 0, 8, 0, 1, 4, 5, -3, 2]
HEIGHT_1 = [5, -1, 0, 3, 1, 2]
HEIGHT_2 = [1, 4, 2]
HEIGHT_3 = [5, 2]
ROOT = [1]
# Cumulative, top to bottom:
#   root 1;  height 3: 1+5 = 6, 1+2 = 3;  height 2: 6+1 = 7, 6+4 = 10, 3+2 = 5
#   height 1: 7+5 = 12, 7-1 = 6, 10+0 = 10, 10+3 = 13, 5+1 = 6, 5+2 = 7
#   leaves: 12+2 = 14, 12+7 = 19, 6+9 = 15, 6+0 = 6, 10+8 = 18, 10+0 = 10, 13+1 = 14, 13+4 = 17, 6+5 = 11, 6-3 = 3,
#   7+2 = 9
SUMS = [14, 19, 15, 6, 18, 10, 14, 17, 11, 3, 9]
WORKED_EXAMPLE = {
    # height 2 has scores 1 4 2: node 0 falls, and leaves 0-3 with it. Of their children, nodes 2 to 5 of height 1, the
    # scores are 0 3 1 2: nodes 3 and 5 stay. Of leaves 6, 7 and 10 the scores are 1 4 2: 7 and 10 stay.
    "level": ({2: [1, 2], 1: [3, 5], 0: [7, 10]}, [17, 9]),
    # height 2 has sums 7 10 5: node 2 falls, and leaves 8-10 with it. Nodes 0 to 3 of height 1 have 12 6 10 13: nodes 0
    # and 3 stay. Leaves 0, 1, 6, 7 have 14 19 14 17: 1 and 7 stay. Leaf 4 had 18, but fell with its parent.
    "cumulative": ({2: [0, 1], 1: [0, 3], 0: [1, 7]}, [19, 17]),
}


@pytest.mark.parametrize("score", SCORES)
def test_worked_example_of_eleven_sentences(score):
    layout = layout_of(11)
    trees = SentenceTrees(layout.sentences)
    own = torch.tensor([*LEAVES, *HEIGHT_1, *HEIGHT_2, *HEIGHT_3, *ROOT], dtype=torch.double).view(-1, 1, 1)
    sums = path_sums(own, trees)
    assert sums[:11].flatten().tolist() == SUMS
    keys, q = (own if score == "level" else sums), torch.ones(11, 1, 1, dtype=torch.double)
    survivors, relevance = WORKED_EXAMPLE[score]
    walk = RecordingWalk(keys, layout.plan(Walks(keeping([2])))[0])
    assert walk(q[:1].transpose(0, 1)[None]).flatten().tolist() == survivors[0]
    assert walk.survivors == survivors
    chosen = choose_in_tree(q, keys, layout, keeping([2]))
    assert (chosen == torch.tensor(survivors[0])).all()
    scores = KERNELS["torch"].score(q, sums, torch.arange(11), chosen)
    assert (scores == torch.tensor(relevance)).all()


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
