"""Capture of intermediate results such as attention weights: :func:`capture`. Nothing is kept outside of it.

A module asks :func:`observer` once per call, which returns None unless a capture is active. Weights that fast kernels
never hold are then computed from the same queries and keys as dense tensors: capture one document at a time.
"""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import AttentionPlan

SENTENCES, TOKENS = "sentences", "tokens"


@dataclass(frozen=True)
class Weights:
    """Attention weights of tokens, zero where they do not attend."""

    name: str  # name of the attention within its module
    over: str  # what it attends to: ``SENTENCES`` (rows of the batch) or ``TOKENS`` (packed states)
    weights: Tensor  # [M, K, H] of M tokens over K sentences or tokens


@dataclass(frozen=True)
class Relevance:
    """Relevance R of the sentences that tokens keep ([T] eq. 3-4), −∞ elsewhere: [N, R, H]."""

    scores: Tensor


@dataclass(frozen=True)
class NodeRelevance:
    """Scores that a walk of sentence trees compares: q·k/√d_k of all nodes in the format of ``conditional.tree``."""

    scores: Tensor  # [N, nodes, H], also of nodes that the walk does not reach
    cumulative: bool  # whether they are sums over the path from the root


@dataclass(frozen=True)
class ContextShare:
    """Share of the context that a gate lets through: s (1 − g), [N, d]; NaN for tokens without context."""

    share: Tensor


@dataclass(frozen=True)
class SourceShares:
    """Distribution of target tokens' attention over several sources."""

    names: Tuple[str, ...]  # the sources, the main one first, perhaps a sentinel last
    shares: Tensor  # [..., K] see :meth:`AttentionCombination.forward`


@dataclass(frozen=True)
class ContextFreeIndicator:
    """χ of a context-aware layer ([Z] eq. 12), [N]: 1 where the output is v, 0 where it is w′.

    For a sum (CA-ATT, eq. 23) the mean over the states that a token attends to; NaN without any.
    """

    chi: Tensor


Evidence = Union[Weights, Relevance, NodeRelevance, ContextShare, SourceShares, ContextFreeIndicator]
Observe = Callable[[Evidence], None]


@dataclass
class Capture:
    """Captured results in the order of the computation."""

    only: Optional[type] = None  # the kind of evidence that is captured; None: every kind
    entries: List[Tuple[nn.Module, Evidence]] = field(default_factory=list)  # modules and their evidence

    def of(self, module: nn.Module) -> List[Evidence]:
        """Returns the evidence of a module."""
        return [evidence for owner, evidence in self.entries if owner is module]


_current: ContextVar[Optional[Capture]] = ContextVar("capture", default=None)


@contextmanager
def capture(only: Optional[type] = None) -> Iterator[Capture]:
    """Captures everything that is computed inside the block, or only one kind of evidence."""
    captured = Capture(only)
    token = _current.set(captured)
    try:
        yield captured
    finally:
        _current.reset(token)


@contextmanager
def joined(arrange: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Joins the :class:`ContextFreeIndicator` values that a module reports for several groups inside the block.

    Args:
        arrange: maps χ of all groups, concatenated, to χ of the packed tokens.
    """
    outer = _current.get()
    if outer is None:
        yield
        return
    with capture(outer.only) as inner:
        yield
    pieces: Dict[nn.Module, List[Tensor]] = {}
    for module, evidence in inner.entries:
        if isinstance(evidence, ContextFreeIndicator):
            pieces.setdefault(module, []).append(evidence.chi)
        else:
            outer.entries.append((module, evidence))
    for module, chi in pieces.items():
        outer.entries.append((module, ContextFreeIndicator(arrange(torch.cat(chi)))))


def observer(module: nn.Module, kind: Optional[type] = None) -> Optional[Observe]:
    """Returns the function that stores evidence of ``module``; None if no capture wants it.

    Args:
        kind: kind of the evidence; None: a kind that only captures of everything include.
    """
    captured = _current.get()
    if captured is None or captured.only not in (None, kind):
        return None
    return lambda evidence: captured.entries.append((module, evidence))


def weights_observer(module: nn.Module, name: str, over: str) -> Optional[Callable[[Tensor], None]]:
    """Returns the function that stores attention weights of ``module`` as :class:`Weights`; None without a capture."""
    observe = observer(module)
    return None if observe is None else lambda weights: observe(Weights(name, over, weights))


def scatter(weights: Tensor, query: Tensor, key: Tensor, into: Tensor) -> None:
    """Adds weights [b, m, k, H] of tokens ``query`` [b, m] over ``key`` [b, k] to ``into`` [M, K, H]."""
    query, key = torch.broadcast_tensors(query[:, :, None], key[:, None, :])
    into.index_put_((query, key), weights.detach(), accumulate=True)


def weights_of_plan(
    q: Tensor,
    k: Tensor,
    plan: AttentionPlan,
    gather: Optional[Tuple[Tensor, Tensor]] = None,
    states: Optional[Tuple[int, int]] = None,
) -> Tensor:
    """Returns softmax(q kᵀ/√d_k) of every row of a plan, [M, K, H]: the weights of ``ragged_attention``.

    Args:
        plan: which queries attend to which keys; not causal.
        gather: indices of their states, see ``MultiHeadAttention.attend``; weights of one state are added.
        states: M and K, with ``gather``.
    """
    query_states, key_states = gather or (torch.arange(len(q), device=q.device), torch.arange(len(k), device=k.device))
    into = q.new_zeros(*(states or (len(q), len(k))), q.size(1))
    for block, padding in zip(plan.blocks, plan.queries.paddings):
        scores = torch.einsum("bmhd,bkhd->bmkh", q[block.query], k[block.key]) / math.sqrt(q.size(-1))
        if block.key_padding is not None:
            scores = scores.masked_fill(block.key_padding[:, None, :, None], -torch.inf)
        weights = scores.softmax(2)
        if padding is not None:
            weights = weights.masked_fill(padding[:, :, None, None], 0)
        scatter(weights, query_states[block.query], key_states[block.key], into)
    return into
