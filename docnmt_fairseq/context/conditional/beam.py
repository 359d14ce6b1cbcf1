"""Walks that keep more nodes than t on their way, of which the best t sentences are selected."""

import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels import SelectionKernel
from docnmt_fairseq.context.conditional.key_order import Subtrees, mean_keys, order_of_keys, sentences_at
from docnmt_fairseq.context.conditional.selection import SelectionKey, Widened
from docnmt_fairseq.context.conditional.tree import TreesOfBatch
from docnmt_fairseq.layers.tie_break import stable_top_k


def widened(selection: SelectionKey, beam: int) -> SelectionKey:
    """Names how many nodes of a height a walk keeps: t, or ``beam`` if that is more."""
    return Widened(selection, beam) if beam else selection


@torch.no_grad()
def best_of(
    found: Tensor, q: Tensor, k: Tensor, layout: DocumentLayout, selection: SelectionKey, kernel: SelectionKernel
) -> Tensor:
    """The t most relevant of the sentences found, [M, H, most].

    Args:
        found: [M, H, b] rows of sentences, −1: none.
        q, k: [N, H, d_k] queries and [R, H, d_k] keys of relevance.
        layout: the batch.
        selection: names which tokens these are, and t.
        kernel: that scores them.
    """
    plan = layout.plan(selection)
    place = stable_top_k(kernel.score(q, k, plan.items, found), plan.most)[1]
    return found.gather(2, place).masked_fill(torch.arange(plan.most, device=q.device) >= plan.limit, -1)


@torch.no_grad()
def choose_by_keys(
    kernel: SelectionKernel, q: Tensor, keys: Tensor, layout: DocumentLayout, selection: SelectionKey, beam: int = 0
) -> Tensor:
    """The rows of the sentences found in trees in the order of keys, [M, H, most]; −1: none.

    Args:
        kernel: that walks and scores.
        q: [N, H, d_k] queries of relevance.
        keys: [R, H, d_k] keys of relevance.
        layout: the batch.
        selection: names which tokens select, and t.
        beam: nodes of a height that the walk keeps, if that is more than t.
    """
    keys = keys.detach()
    order = order_of_keys(keys, layout.plan(Subtrees()))
    nodes = mean_keys(keys, order, layout.plan(TreesOfBatch()))
    found = sentences_at(kernel.choose_in_tree(q, nodes, layout, widened(selection, beam)), order)
    return best_of(found, q, keys, layout, selection, kernel) if beam else found
