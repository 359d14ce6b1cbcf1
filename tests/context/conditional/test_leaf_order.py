"""Trees in key order only find sentences; the rest is flat selection."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.context.conditional.attention import ConditionalAttention
from docnmt_fairseq.context.conditional.kernels import KERNELS
from docnmt_fairseq.context.conditional.selection import TopT, TreeBeam
from docnmt_fairseq.context.conditional.tree import Subtrees, TreesOfBatch, leaf_order, mean_keys
from docnmt_fairseq.context.conditional.tree_attention import TreeAttention, sentences_at
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

LAYER = {"embed_dim": 6, "heads": 2, "head_dim": 3}
BY_KEYS = {"tree_order": "keys", "tree_merge": "average"}


def pair(**options):
    """Returns tree and flat selection with the same parameters."""
    torch.manual_seed(0)
    flat = build_mechanism(ConditionalAttention, **LAYER, **{n: v for n, v in options.items() if n != "tree_beam"})
    tree = build_mechanism(TreeAttention, **LAYER, **BY_KEYS, **options)
    tree.load_state_dict(flat.state_dict())
    return tree.double(), flat.double()


@settings(max_examples=12)
@given(layouts(max_sentences=11, max_words=2))
def test_leaf_order_is_a_permutation_of_each_document(layout):
    torch.manual_seed(0)
    order = leaf_order(torch.randn(layout.tokens.rows, 3, 4), layout.plan(Subtrees()))
    for first, last in zip(layout.sentences.offsets, layout.sentences.offsets[1:]):
        expected = torch.arange(first, last)[:, None].expand(-1, 3)
        assert torch.equal(order[first:last].sort(0).values, expected)


def test_subtrees_separate_clusters_of_keys():
    """Keys around two points, alternating: each half of the tree has one cluster."""
    layout = make_layout([1] * 8, [8])
    torch.manual_seed(0)
    side = torch.tensor([0, 1] * 4)
    keys = 0.1 * torch.randn(8, 2, 5) + 4.0 * side[:, None, None] * torch.tensor([[1.0], [-1.0]])
    order = leaf_order(keys, layout.plan(Subtrees()))
    for head in range(2):
        assert len(set(side[order[:4, head]].tolist())) == len(set(side[order[4:, head]].tolist())) == 1
    means = mean_keys(keys, order, layout.plan(TreesOfBatch()))
    torch.testing.assert_close(means[-1], keys.mean(0))
    torch.testing.assert_close(means[12], torch.stack([keys[order[:4, head], head].mean(0) for head in range(2)]))


@settings(max_examples=8)
@given(layouts(max_sentences=9, max_words=3), st.integers(1, 6), st.booleans(), st.booleans())
def test_beam_over_all_nodes_equals_flat_selection(layout, t, own, annealing):
    tree, flat = pair(context_top_t=t, context_always_keep_own=own, tree_beam=16, context_top_t_anneal_updates=2)
    for mechanism in (tree, flat):
        mechanism.schedule.set_num_updates(1 if annealing else 2)  # half-way, t differs between documents
    x = torch.randn(layout.tokens.total, 6, dtype=torch.double)
    outs, gradients = [], []
    for mechanism in (tree, flat):
        given = x.clone().requires_grad_()
        out = mechanism(given, layout)
        outs.append(out)
        gradients.append(torch.autograd.grad(out.square().sum(), [given, *mechanism.parameters()]))
    torch.testing.assert_close(*outs)
    torch.testing.assert_close(*gradients)


def recall(order, beam, t=4):
    """Share of the exact t best of 256 sentences with unit keys that a beam finds."""
    torch.manual_seed(0)
    layout = make_layout([1] * 256, [256])
    keys = torch.nn.functional.normalize(torch.randn(256, 2, 8), dim=-1)
    q, key, trees = torch.randn(256, 2, 8), TopT(t), layout.plan(TreesOfBatch())
    if order == "keys":
        order = leaf_order(keys, layout.plan(Subtrees()))
    else:
        order = torch.arange(256)[:, None].expand(-1, 2)
    found = KERNELS["torch"].choose_in_tree(q, mean_keys(keys, order, trees), layout, TreeBeam(key, beam))
    exact = KERNELS["torch"].choose(q, keys, layout, key)
    return float((exact[..., None] == sentences_at(found, order)[:, :, None]).any(-1).float().mean())


def test_key_order_has_higher_recall_than_text_order():
    assert recall("keys", 16) > 0.85
    assert recall("text", 16) < 0.6


@pytest.mark.parametrize(
    ("options", "word"), [({"tree_merge": "source2token"}, "average"), ({"selection_score": "cumulative"}, "level")]
)
def test_incompatible_options_are_refused(options, word):
    wrong = TreeAttention.Options(**{**BY_KEYS, **options})
    assert [word in problem for problem in TreeAttention.problems(wrong)] == [True]
    assert list(TreeAttention.problems(TreeAttention.Options(**BY_KEYS))) == []
