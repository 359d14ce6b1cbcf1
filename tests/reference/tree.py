"""ConstructBT and TraverseTree node by node, from the numbered steps of [T] sec. 3.3.1 and 3.3.2; slow and obvious."""

import itertools
import math
from typing import Callable, Dict, List, Optional, Sequence

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from tests.reference.attention import attention, sentences_of, words_of

NONE = -math.inf


class Node:
    """One circle of fig. 2 and 3."""

    def __init__(self, encoding: Tensor, children: Sequence["Node"] = (), sentence: Optional[int] = None):
        self.encoding = encoding
        self.children = list(children)
        self.sentence = sentence  # of a leaf: its place in the document
        self.relevance = None  # the lower number of fig. 3: a tensor, or −∞
        self.cumulative = None  # the upper one


def construct_bt(encodings: Sequence[Tensor], merge: Callable[[Tensor, Tensor], Tensor]) -> Node:
    level = [Node(e, sentence=i) for i, e in enumerate(encodings)]  # step 1
    while len(level) > 1:  # step 4
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]  # step 2; the last may be a dummy of one
        level = [  # step 3
            Node(merge(*(child.encoding for child in pair)) if len(pair) == 2 else pair[0].encoding, pair)
            for pair in pairs
        ]
    return level[0]


def levels(root: Node) -> List[List[Node]]:
    """From the root to the leaves."""
    found = [[root]]
    while found[-1][0].children:
        found.append([child for node in found[-1] for child in node.children])
    return found


def all_nodes(root: Node) -> List[Node]:
    """Leaves first, then height by height, each from left to right."""
    return [node for level in reversed(levels(root)) for node in level]


def drop(node: Node) -> None:
    """Step 2c: −∞ for a node and everything below it."""
    node.relevance = node.cumulative = NONE
    for child in node.children:
        drop(child)


def is_dropped(node: Node) -> bool:
    return isinstance(node.relevance, float)


def traverse_tree(root: Node, relevance: Callable[[Node], Tensor], t: int, selection_score: str) -> None:
    """Gives every node its scores. The sentences that remain are the leaves whose scores are not −∞."""
    for node in all_nodes(root):
        node.relevance = node.cumulative = None
    root.relevance = root.cumulative = relevance(root)  # step 1
    for above, level in zip(levels(root), levels(root)[1:]):  # step 2
        for parent in above:
            for child in parent.children:
                if not is_dropped(child):  # step 2a
                    child.relevance = relevance(child)
                    child.cumulative = parent.cumulative + child.relevance
        scored = [node for node in level if not is_dropped(node)]  # step 2b
        by = {"level": lambda node: node.relevance, "cumulative": lambda node: node.cumulative}[selection_score]
        ranked = sorted(range(len(scored)), key=lambda i: (-float(by(scored[i]).detach()), i))
        for i in ranked[t:]:
            drop(scored[i])


def remaining(root: Node) -> List[Node]:
    return [leaf for leaf in levels(root)[-1] if not is_dropped(leaf)]


def source2token_merge(left: Tensor, right: Tensor, query: Tensor, w_k, w_v, w_o) -> Tensor:
    """Attention(q, S W^K, S W^V) W^O over S = [left; right] ([T] eq. 2)."""
    heads, d_k = query.shape
    cuts = [slice(h * d_k, (h + 1) * d_k) for h in range(heads)]
    both = (left, right)
    return w_o(
        torch.cat(
            [attention(query[h], [w_k(e)[c] for e in both], [w_v(e)[c] for e in both]) for h, c in enumerate(cuts)]
        )
    )


def multi_dim_merge(left: Tensor, right: Tensor, w_1, w_2) -> Tensor:
    """Σ a ⊙ e with a softmax over the two of W_2 elu(W_1 e), feature by feature."""
    scores = [w_2(torch.nn.functional.elu(w_1(e))) for e in (left, right)]
    merged = []
    for f in range(len(left)):
        a = torch.softmax(torch.stack([scores[0][f], scores[1][f]]), 0)
        merged.append(a[0] * left[f] + a[1] * right[f])
    return torch.stack(merged)


def average_merge(left: Tensor, right: Tensor) -> Tensor:
    return (left + right) / 2


def scaled_product(q: Tensor, keys: Dict[int, Tensor]) -> Callable[[Node], Tensor]:
    """q·k/√d_k of any node ([T] eq. 3), from keys by id of the node."""
    return lambda node: q @ keys[id(node)] / math.sqrt(len(q))


def hierarchical_conditional_attention(
    q, k, v, q_s, encodings, w_ks, merge, layout: DocumentLayout, t: int, selection_score: str, always_keep_own: bool
) -> Tensor:
    """softmax(q·k/√d_k + TraverseTree(x, ConstructBT(S), t)) v, head by head, token by token ([T] sec. 3.3.2).

    q, k, v, q_s: [N, H, d_k]; encodings: [R, d]; w_ks: [d] to [H · d_k].
    """
    heads, d_k = q.shape[1:]
    out = []
    for document in range(layout.sentences.rows):
        rows = sentences_of(layout, document)
        root = construct_bt([encodings[r] for r in rows], merge)
        keys = {id(node): w_ks(node.encoding).view(heads, d_k) for node in all_nodes(root)}
        for own in rows:
            for token, h in itertools.product(words_of(layout, own), range(heads)):
                relevance = scaled_product(q_s[token, h], {node: key[h] for node, key in keys.items()})
                traverse_tree(root, relevance, t, selection_score)
                found = {leaf.sentence: leaf.cumulative for leaf in remaining(root)}
                if always_keep_own and own - rows[0] not in found:
                    traverse_tree(root, relevance, len(rows), selection_score)  # nothing is dropped
                    found[own - rows[0]] = remaining(root)[own - rows[0]].cumulative
                pairs = [(w, r) for s, r in found.items() for w in words_of(layout, rows[s])]
                keys_of_words, values = [k[w, h] for w, _ in pairs], [v[w, h] for w, _ in pairs]
                out.append(attention(q[token, h], keys_of_words, values, [r for _, r in pairs]))
    return torch.stack(out).unflatten(0, (-1, heads))
