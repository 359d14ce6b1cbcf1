"""ConstructBT: trees of a batch, values of their nodes, and path sums, against the reference."""

import pytest
import torch
from hypothesis import given, settings

from docnmt_fairseq.context.conditional.tree import SentenceTrees, construct, path_sums
from docnmt_fairseq.layers.sentence_encoders import TREE_MERGES
from tests.reference import tree as reference
from tests.support.documents import layouts
from tests.support.trees import layout_of, node_of_batch, reference_merge

WIDTH, HEADS = 6, 2


def build_merge(name):
    torch.manual_seed(1)
    return TREE_MERGES[name](WIDTH, HEADS).double()


def compare(layout, name):
    module, trees = build_merge(name), SentenceTrees(layout.sentences)
    leaves = torch.randn(layout.tokens.rows, WIDTH, dtype=torch.double, requires_grad=True)
    nodes = construct(leaves, trees, module)
    sums = path_sums(nodes, trees)
    merge = reference_merge(name, module)
    fast, slow, offsets = [], [], layout.sentences.offsets
    for document in range(layout.sentences.rows):
        numbers = node_of_batch(trees, layout, document)
        root = reference.construct_bt(list(leaves[offsets[document] : offsets[document + 1]]), merge)
        total = {id(root): root.encoding}
        for node in reversed(reference.all_nodes(root)):
            total.update({id(child): total[id(node)] + child.encoding for child in node.children})
        expected = reference.all_nodes(root)
        assert len(expected) == len(numbers)
        fast += [nodes[numbers], sums[numbers]]
        slow += [torch.stack([node.encoding for node in expected]), torch.stack([total[id(n)] for n in expected])]
    fast, slow = torch.cat(fast), torch.cat(slow)
    assert len(nodes) == sum(trees.sizes) == len(fast) // 2
    torch.testing.assert_close(fast, slow, atol=1e-9, rtol=1e-9)
    inputs = [leaves, *module.parameters()]
    weight = torch.linspace(-1, 1, fast.numel(), dtype=torch.double).view_as(fast)
    of_fast = torch.autograd.grad((fast * weight).sum(), inputs)
    of_slow = torch.autograd.grad((slow * weight).sum(), inputs, allow_unused=True)
    for a, b in zip(of_fast, of_slow):
        torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", TREE_MERGES.names())
@settings(max_examples=10)
@given(layouts(max_sentences=12, max_words=1))
def test_nodes_and_path_sums_equal_the_reference(name, layout):
    compare(layout, name)


def test_tree_of_the_figure():
    trees = SentenceTrees(layout_of(11).sentences)
    assert trees.sizes == [11, 6, 3, 2, 1]
    assert trees.counts[:, 0].tolist() == [11, 6, 3, 2, 1]
    assert [int(level.pairs.rows) for level in trees.levels] == [5, 3, 1, 1]
    assert [level.copied.tolist() for level in trees.levels] == [[10], [], [2], []]


@pytest.mark.parametrize("name", TREE_MERGES.names())
def test_merge_has_gradients_in_batches_of_single_sentences(name):
    """Data-parallel processes need a gradient of every parameter in every batch."""
    layout, module = layout_of(1, 1), build_merge(name)
    leaves = torch.randn(2, WIDTH, dtype=torch.double)
    nodes = construct(leaves, SentenceTrees(layout.sentences), module)
    torch.testing.assert_close(nodes, leaves)
    if list(module.parameters()):
        nodes.sum().backward()
        assert all((parameter.grad == 0).all() for parameter in module.parameters())
