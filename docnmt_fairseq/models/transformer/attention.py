"""The attentions of a decoder layer: to the target tokens before, and to the sources; packed, and in a search."""

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn.functional as F
from fairseq.incremental_decoding_utils import FairseqIncrementalState
from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plans import TargetsToSource
from docnmt_fairseq.batch.layout import PlanKey
from docnmt_fairseq.layers.attention import MultiHeadAttention
from docnmt_fairseq.layers.capture import SourceShares, observer
from docnmt_fairseq.layers.search_kernels import attend_hypotheses
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.transformer.config import (
    DocumentTransformerOptions,
    combination_config,
    combination_name,
)
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.packed import TargetsToAllSources
from docnmt_fairseq.multisource.source_states import padded_sources

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class FairseqAttention(MultiHeadAttention):
    """Multi-head attention whose parameters have fairseq's order and, by the same seed, fairseq's initial values."""

    def add_projections(self, embed_dim: int, source_dim: int) -> None:
        """See :class:`MultiHeadAttention`."""
        self.k_proj = nn.Linear(source_dim, embed_dim)
        self.v_proj = nn.Linear(source_dim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        gain = 2**-0.5 if source_dim == embed_dim else 1.0
        for linear in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(linear.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def heads_first(self, x: Tensor) -> Tensor:
        """[B, H, m, d/H] from [B, m, d]."""
        return self.split_heads(x).transpose(1, 2)

    def of_padded(self, x: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        """What queries x [B, m, d] find in keys and values [B, H, n, d/H]: [B, m, d].

        Args:
            x, k, v: see above.
            causal: query i sees keys 0..i only; else all.
        """
        q, dropout = self.heads_first(self.q_proj(x)), self.dropout if self.training else 0.0
        output = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
        return self.out_proj(output.transpose(1, 2).flatten(2))


class TargetSelfAttention(FairseqIncrementalState, FairseqAttention):
    """Attention of target tokens to those before them in their sentence."""

    # fairseq's, which has no types
    get_incremental_state: Callable[[IncrementalState, str], Optional[Dict[str, Tensor]]]
    set_incremental_state: Callable[[IncrementalState, str, Dict[str, Tensor]], IncrementalState]

    def of_rows(self, x: Tensor, incremental_state: Optional[IncrementalState]) -> Tensor:
        """What tokens find, [B, m, d].

        Args:
            x: [B, m, d] all tokens of each row; with a state of a search the last one, m = 1.
            incremental_state: what the search keeps.
        """
        k, v = self.heads_first(self.k_proj(x)), self.heads_first(self.v_proj(x))
        if incremental_state is None:
            return self.of_padded(x, k, v, causal=True)
        before = self.get_incremental_state(incremental_state, "before")
        if before is not None:
            k, v = torch.cat([before["k"], k], dim=2), torch.cat([before["v"], v], dim=2)
        self.set_incremental_state(incremental_state, "before", {"k": k, "v": v})
        return self.of_padded(x, k, v)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> IncrementalState:
        """Takes over what is kept of the rows ``new_order``."""
        before = self.get_incremental_state(incremental_state, "before")
        if before is not None:
            moved = {name: part.index_select(0, new_order) for name, part in before.items()}
            self.set_incremental_state(incremental_state, "before", moved)
        return incremental_state


class SourceAttention(nn.Module):
    """Contract of the attention of a decoder layer to the sources."""

    def plans(self) -> Iterator[PlanKey[Any]]:
        """The plans that :meth:`of_packed_targets` will ask a layout for."""
        raise NotImplementedError

    def of_packed_targets(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """What packed target tokens x [N_t, d] find, [N_t, d]."""
        raise NotImplementedError

    def of_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """What hypotheses look at, computed once a sentence: [S, ..., n, w] each, of n states of every sentence.

        Zeros may follow these n: what they would hold is not seen.
        """
        raise NotImplementedError

    def of_hypotheses(self, x: Tensor, parts: List[Tensor], weights: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        """What hypotheses find, [S, b, d], and their weights of the main source's tokens, if these are wanted.

        Args:
            x: [S, b, d] b tokens of hypotheses of each sentence.
            parts: of :meth:`of_sources`.
            weights: whether they are wanted, [S, H, b, n].
        """
        raise NotImplementedError


class SingleSourceAttention(FairseqAttention, SourceAttention):
    """fairseq's encoder-decoder attention: to the tokens of the source sentence."""

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`SourceAttention`."""
        yield TargetsToSource()

    def of_packed_targets(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """See :class:`SourceAttention`."""
        return self.attend(x, sources.by_source[0].states, sources.layout.plan(TargetsToSource()))

    def of_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """See :class:`SourceAttention`: keys and values [S, H, n, d/H], and which there are, [S, 1, n, 1]."""
        states, padding = sources.padded()
        sides = (self.heads_first(proj(states)).contiguous() for proj in (self.k_proj, self.v_proj))
        return [*sides, ~padding[:, None, :, None]]

    def of_hypotheses(self, x: Tensor, parts: List[Tensor], weights: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`SourceAttention`."""
        k, v, seen = parts
        q = self.split_heads(self.q_proj(x))
        if not weights:
            return self.out_proj(attend_hypotheses(q, k, v, seen[:, 0].transpose(1, 2))), None
        scores = (q.transpose(1, 2) / q.size(-1) ** 0.5) @ k.transpose(-1, -2)
        shares = scores.masked_fill(~seen.transpose(-1, -2), -torch.inf).softmax(-1)  # [S', H, b, n]
        return self.out_proj((shares @ v).transpose(1, 2).flatten(2)), shares


class CombinedAttention(SourceAttention):
    """Attention to all sources.

    Args:
        cfg: the model's options.
        key: of the plan that says of every source which of its states decoded sentences see.
        names: of what attention is divided over: the sources, perhaps a sentinel.
    """

    def __init__(self, cfg: DocumentTransformerOptions, key: TargetsToAllSources, names: Tuple[str, ...]):
        super().__init__()
        config = combination_config(cfg)
        self.combination = ATTENTION_COMBINATIONS[str(combination_name(cfg))](config)
        self.key, self.names = key, names
        self.asks_evidence = config.attention_sentinel

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`SourceAttention`."""
        yield self.key

    def of_packed_targets(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """See :class:`SourceAttention`."""
        projected = self.combination.project_sources(sources.all_states(self.names))
        plan = sources.layout.plan(self.key)
        return self.show(*plan.combine(self.combination, x, projected, x if self.asks_evidence else None))

    def of_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """See :class:`SourceAttention`: what is attended to of every source, [S, n, w], then which there is."""
        projected = sources.per_batch(self, lambda: self.combination.project_sources(sources.all_states(self.names)))
        padded, paddings = padded_sources(sources.by_source, projected, sources.layout, sources.taken)
        return [*padded, *(~padding[..., None] for padding in paddings)]

    def of_hypotheses(self, x: Tensor, parts: List[Tensor], weights: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`SourceAttention`; no weights, combinations keep those of tokens to themselves."""
        projected, seen = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        paddings = [~of_source.squeeze(-1) for of_source in seen]
        return self.show(*self.combination(x, projected, paddings, x if self.asks_evidence else None)), None

    def show(self, context: Tensor, shares: Tensor) -> Tensor:
        """Context vectors, after the shares were shown to who records."""
        observe = observer(self)
        if observe is not None:
            observe(SourceShares(self.names, shares.detach()))
        return context

    def begin_as_plain_attention(self, state_dict: Dict[str, Tensor], prefix: str) -> None:
        """Moves an ordinary attention's parameters to where the main source has its own; elsewhere they are left out.

        Args:
            state_dict: a checkpoint's state.
            prefix: the name of this module in it.
        """
        own = self.combination.main_source()
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            for kind in ("weight", "bias"):
                value = state_dict.pop(f"{prefix}.{part}.{kind}", None)
                if value is not None and part in own:
                    state_dict[f"{prefix}.combination.{own[part]}.{kind}"] = value
