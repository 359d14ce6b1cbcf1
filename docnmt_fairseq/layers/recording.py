"""What mechanisms computed on the way, for whoever wants to look: :func:`record`; nothing is kept otherwise.

A mechanism asks :func:`observer` once a call; it is None unless somebody records. Weights that fast kernels never
hold are then computed from the same queries and keys, as dense tensors: record one document at a time.
"""

import math
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plan import AttentionPlan

SENTENCES, TOKENS = "sentences", "tokens"


@dataclass(frozen=True)
class Weights:
    """How tokens divide their attention, zero where they do not look.

    Attributes:
        name: which attention of a mechanism with several.
        over: what it goes to, ``SENTENCES`` (rows of the batch) or ``TOKENS`` (packed states).
        weights: [M, K, H] of M tokens, K of what it goes to.
    """

    name: str
    over: str
    weights: Tensor


@dataclass(frozen=True)
class Relevance:
    """R of the sentences that tokens keep ([T] eq. 3-4), −∞ elsewhere: [N, R, H]."""

    scores: Tensor


@dataclass(frozen=True)
class NodeRelevance:
    """By what a walk down sentence trees goes: q·k/√d_k of all nodes, [N, nodes, H], in ``conditional.tree``'s format.

    Attributes:
        scores: of all nodes, also of those that the walk never came to.
        cumulative: whether they are sums over the path from the root.
    """

    scores: Tensor
    cumulative: bool


@dataclass(frozen=True)
class ContextShare:
    """What a gate lets through of the context: s (1 − g), [N, d]; NaN for tokens that have no context."""

    share: Tensor


@dataclass(frozen=True)
class SourceShares:
    """How target tokens divide their attention over several sources.

    Attributes:
        names: of the sources, the main one first, perhaps a sentinel last.
        shares: [..., K] see :meth:`AttentionCombination.forward`.
    """

    names: Tuple[str, ...]
    shares: Tensor


@dataclass(frozen=True)
class ContextFreeIndicator:
    """χ of a context-aware layer ([Z] eq. 12), [N]: 1 where what it gives a token is v, 0 where it is w′.

    Of a sum over many (CA-ATT, eq. 23) the mean over what a token sees; NaN where that is nothing.
    """

    chi: Tensor


Evidence = Union[Weights, Relevance, NodeRelevance, ContextShare, SourceShares, ContextFreeIndicator]
Observe = Callable[[Evidence], None]


@dataclass
class Recording:
    """What was recorded, in the order of the computation; only evidence of the kind ``only``, if one is given."""

    only: Optional[type] = None
    entries: List[Tuple[nn.Module, Evidence]] = field(default_factory=list)

    def of(self, module: nn.Module) -> List[Evidence]:
        """The evidence of that module."""
        return [evidence for owner, evidence in self.entries if owner is module]


_current: ContextVar[Optional[Recording]] = ContextVar("recording", default=None)


@contextmanager
def record(only: Optional[type] = None) -> Iterator[Recording]:
    """The recording of everything that is computed inside the block, or only of one kind of evidence."""
    recording = Recording(only)
    token = _current.set(recording)
    try:
        yield recording
    finally:
        _current.reset(token)


@contextmanager
def joined(arrange: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Makes one :class:`ContextFreeIndicator` a module of all that it reports inside the block, group by group.

    Args:
        arrange: from χ of all groups, one after another, to χ of the packed tokens.
    """
    outer = _current.get()
    if outer is None:
        yield
        return
    with record(outer.only) as inner:
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
    """The function that takes the evidence of ``module``; None if nobody records it.

    Args:
        module: whose evidence it is.
        kind: of the evidence; None: one that only whoever records everything sees.
    """
    recording = _current.get()
    if recording is None or recording.only not in (None, kind):
        return None
    return lambda evidence: recording.entries.append((module, evidence))


def weights_observer(module: nn.Module, name: str, over: str) -> Optional[Callable[[Tensor], None]]:
    """The function that takes attention weights of ``module`` as :class:`Weights`; None if nobody records."""
    observe = observer(module)
    return None if observe is None else lambda weights: observe(Weights(name, over, weights))


def scatter(weights: Tensor, query: Tensor, key: Tensor, into: Tensor) -> None:
    """Adds weights [b, m, k, H] of tokens ``query`` [b, m] to ``key`` [b, k] to ``into`` [M, K, H]."""
    query, key = torch.broadcast_tensors(query[:, :, None], key[:, None, :])
    into.index_put_((query, key), weights.detach(), accumulate=True)


def weights_of_plan(
    q: Tensor,
    k: Tensor,
    plan: AttentionPlan,
    gather: Optional[Tuple[Tensor, Tensor]] = None,
    states: Optional[Tuple[int, int]] = None,
) -> Tensor:
    """softmax(q kᵀ/√d_k) of every row of a plan, [M, K, H]: what ``ragged_attention`` weighs values by.

    Args:
        q: [N_q, H, d_k] packed queries.
        k: [N_k, H, d_k] packed keys.
        plan: which queries see which keys; not a causal one.
        gather: the states that they are, see ``MultiHeadAttention.attend``; weights of one state add up.
        states: M and K, if ``gather`` is given.
    """
    of_q, of_k = gather or (torch.arange(len(q), device=q.device), torch.arange(len(k), device=k.device))
    into = q.new_zeros(*(states or (len(q), len(k))), q.size(1))
    for block, padding in zip(plan.blocks, plan.queries.paddings):
        scores = torch.einsum("bmhd,bkhd->bmkh", q[block.query], k[block.key]) / math.sqrt(q.size(-1))
        if block.key_padding is not None:
            scores = scores.masked_fill(block.key_padding[:, None, :, None], -torch.inf)
        weights = scores.softmax(2)
        if padding is not None:
            weights = weights.masked_fill(padding[:, :, None, None], 0)
        scatter(weights, of_q[block.query], of_k[block.key], into)
    return into
