"""Sentence trees of the reference and of a batch."""

import itertools

import torch

from docnmt_fairseq.context.conditional.tree import SentenceTrees
from tests.reference import tree as reference
from tests.support.documents import make_layout


def layout_of(*documents):
    return make_layout([1] * sum(documents), list(documents))


def reference_merge(name, module):
    if name == "average":
        return reference.average_merge
    if name == "multi-dim-source2token":
        return lambda left, right: reference.multi_dim_merge(left, right, module.hidden, module.score)
    weights = (module.query, module.k_proj, module.v_proj, module.out_proj)
    return lambda left, right: reference.source2token_merge(left, right, *weights)


def node_of_batch(trees, layout, document):
    """Returns the numbers of a document's nodes, in the order of the reference's ``all_nodes``."""
    numbers, height, n = [], 0, int(layout.sentences.lengths[document])
    while True:
        count = -(-n // 2**height)
        numbers += [int(trees.first[height, document]) + j for j in range(count)]
        if count == 1:
            return numbers
        height += 1


def tree_inputs(layout, heads, d_k, whole=False, seed=0):
    """Returns q [N, H, d_k], keys [nodes, H, d_k] of trees, copies' equal to what they copy; whole: integers."""
    generator, trees = torch.Generator().manual_seed(seed), SentenceTrees(layout.sentences)

    def random(rows):
        if whole:
            return torch.randint(-1, 2, (rows, heads, d_k), generator=generator).double()
        return torch.randn(rows, heads, d_k, generator=generator, dtype=torch.double)

    q, keys = random(layout.tokens.total), list(random(sum(trees.sizes)).split(trees.sizes))
    for height, level in enumerate(trees.levels):
        is_copy = level.order >= level.pairs.rows
        copied = level.order[is_copy] - level.pairs.rows
        keys[height + 1][is_copy] = keys[height][level.copied[copied]]
    return q, torch.cat(keys), trees


def found_by_steps(layout, q, keys, trees, kept, score):
    """Returns {(token, head): {sentence row: cumulative relevance}} by the reference."""
    found = {}
    for document in range(layout.sentences.rows):
        numbers = node_of_batch(trees, layout, document)
        rows = numbers[: int(layout.sentences.lengths[document])]
        root = reference.construct_bt([torch.zeros(())] * len(rows), reference.average_merge)
        number = dict(zip(map(id, reference.all_nodes(root)), numbers))
        tokens = layout.document_tokens.offsets[document : document + 2]
        for token, h in itertools.product(range(*tokens), range(q.size(1))):
            relevance = reference.scaled_product(q[token, h], {node: keys[place, h] for node, place in number.items()})
            reference.traverse_tree(root, relevance, int(kept[document]), score)
            found[token, h] = {rows[leaf.sentence]: leaf.cumulative for leaf in reference.remaining(root)}
    return found
