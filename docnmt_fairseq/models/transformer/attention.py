"""Attentions of a decoder layer: to previous target tokens and to the sources, packed or during decoding."""

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn.functional as F
from fairseq.incremental_decoding_utils import FairseqIncrementalState
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import PlanKey, TargetsToSource
from docnmt_fairseq.layers.attention import MultiHeadAttention
from docnmt_fairseq.layers.capture import SourceShares, observer
from docnmt_fairseq.layers.search_kernels import attend_hypotheses
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.transformer.config import DocumentTransformerOptions, combination_name
from docnmt_fairseq.models.transformer.parts import combination_config
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.packed import TargetsToAllSources, padded_sources

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class FairseqAttention(MultiHeadAttention):
    """Multi-head attention with the parameter order and, for the same seed, the initial values of fairseq's."""

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

    def attend_padded(self, x: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
        """Attention of x [B, m, d] to keys and values [B, H, n, d/H]: [B, m, d].

        Args:
            x, k, v: see above.
            causal: query i sees keys 0..i only.
        """
        q, dropout = self.heads_first(self.q_proj(x)), self.dropout if self.training else 0.0
        output = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
        return self.out_proj(output.transpose(1, 2).flatten(2))


class TargetSelfAttention(FairseqIncrementalState, FairseqAttention):
    """Causal self-attention of target tokens."""

    # types of fairseq's methods
    get_incremental_state: Callable[[IncrementalState, str], Optional[Dict[str, Tensor]]]
    set_incremental_state: Callable[[IncrementalState, str, Dict[str, Tensor]], IncrementalState]

    def attend_rows(self, x: Tensor, incremental_state: Optional[IncrementalState]) -> Tensor:
        """Attention output [B, m, d].

        Args:
            x: [B, m, d] all tokens of each row; with an incremental state the last one, m = 1.
            incremental_state: cached keys and values.
        """
        k, v = self.heads_first(self.k_proj(x)), self.heads_first(self.v_proj(x))
        if incremental_state is None:
            return self.attend_padded(x, k, v, causal=True)
        before = self.get_incremental_state(incremental_state, "before")
        if before is not None:
            k, v = torch.cat([before["k"], k], dim=2), torch.cat([before["v"], v], dim=2)
        self.set_incremental_state(incremental_state, "before", {"k": k, "v": v})
        return self.attend_padded(x, k, v)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> IncrementalState:
        """Selects the cache of the rows ``new_order``."""
        before = self.get_incremental_state(incremental_state, "before")
        if before is not None:
            moved = {name: part.index_select(0, new_order) for name, part in before.items()}
            self.set_incremental_state(incremental_state, "before", moved)
        return incremental_state


class SourceAttention(nn.Module):
    """Contract of the attention of a decoder layer to the sources."""

    def plans(self) -> Iterator[PlanKey[Any]]:
        """Plans that :meth:`attend_packed` uses."""
        raise NotImplementedError

    def attend_packed(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """Attention output of packed target tokens x [N_t, d], [N_t, d]."""
        raise NotImplementedError

    def project_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """Keys, values and masks for :meth:`attend_hypotheses`, once per sentence: [S, ..., n, w] for n states.

        Zeros may be appended to the n states: their masks are False.
        """
        raise NotImplementedError

    def attend_hypotheses(
        self, x: Tensor, projected: List[Tensor], weights: bool = False
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Attention output of hypotheses, [S, b, d], and the weights of the main source's tokens if wanted.

        Args:
            x: [S, b, d] b tokens of hypotheses of each sentence.
            projected: result of :meth:`project_sources`.
            weights: return weights [S, H, b, n], if available.
        """
        raise NotImplementedError


class SingleSourceAttention(FairseqAttention, SourceAttention):
    """fairseq's encoder-decoder attention to the tokens of the source sentence."""

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`SourceAttention`."""
        yield TargetsToSource()

    def attend_packed(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """See :class:`SourceAttention`."""
        return self.attend(x, sources.by_source[0].states, sources.layout.plan(TargetsToSource()))

    def project_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """See :class:`SourceAttention`: keys and values [S, H, n, d/H], and their mask [S, 1, n, 1]."""
        states, padding = sources.padded()
        sides = (self.heads_first(proj(states)).contiguous() for proj in (self.k_proj, self.v_proj))
        return [*sides, ~padding[:, None, :, None]]

    def attend_hypotheses(
        self, x: Tensor, projected: List[Tensor], weights: bool = False
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`SourceAttention`."""
        k, v, seen = projected
        q = self.split_heads(self.q_proj(x))
        if not weights:
            return self.out_proj(attend_hypotheses(q, k, v, seen[:, 0].transpose(1, 2))), None
        scores = (q.transpose(1, 2) / q.size(-1) ** 0.5) @ k.transpose(-1, -2)
        shares = scores.masked_fill(~seen.transpose(-1, -2), -torch.inf).softmax(-1)  # [S', H, b, n]
        return self.out_proj((shares @ v).transpose(1, 2).flatten(2)), shares


class CombinedAttention(SourceAttention):
    """Attention to all sources by an attention combination.

    Args:
        cfg: options of the model.
        key: key of the plan that maps decoded sentences to the states of every source.
        names: names of the shares of attention: the sources, perhaps a sentinel.
    """

    def __init__(self, cfg: DocumentTransformerOptions, key: TargetsToAllSources, names: Tuple[str, ...]):
        super().__init__()
        config = combination_config(cfg)
        self.combination = ATTENTION_COMBINATIONS[str(combination_name(cfg))](config)
        self.key, self.names = key, names
        self.with_evidence = config.attention_sentinel

    def plans(self) -> Iterator[PlanKey[Any]]:
        """See :class:`SourceAttention`."""
        yield self.key

    def attend_packed(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """See :class:`SourceAttention`."""
        projected = self.combination.project_sources(sources.all_states(self.names))
        plan = sources.layout.plan(self.key)
        return self.record(*plan.combine(self.combination, x, projected, x if self.with_evidence else None))

    def project_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """See :class:`SourceAttention`: keys and values of every source, [S, n, w], then their masks."""
        projected = sources.per_batch(self, lambda: self.combination.project_sources(sources.all_states(self.names)))
        padded, paddings = padded_sources(sources.by_source, projected, sources.layout, sources.taken)
        return [*padded, *(~padding[..., None] for padding in paddings)]

    def attend_hypotheses(
        self, x: Tensor, projected: List[Tensor], weights: bool = False
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """See :class:`SourceAttention`; without weights, which combinations do not expose."""
        states, seen = projected[: len(projected) // 2], projected[len(projected) // 2 :]
        paddings = [~of_source.squeeze(-1) for of_source in seen]
        return self.record(*self.combination(x, states, paddings, x if self.with_evidence else None)), None

    def record(self, context: Tensor, shares: Tensor) -> Tensor:
        """Context vectors; records the shares of the sources if a recording is active."""
        observe = observer(self)
        if observe is not None:
            observe(SourceShares(self.names, shares.detach()))
        return context

    def begin_as_plain_attention(self, state_dict: Dict[str, Tensor], prefix: str) -> None:
        """Initialises the main source's attention from an ordinary one in a checkpoint's state, if it has the form.

        Args:
            state_dict: the checkpoint's state, modified in place.
            prefix: name of this module in it.
        """
        own = self.combination.main_source()
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            for kind in ("weight", "bias"):
                value = state_dict.pop(f"{prefix}.{part}.{kind}", None)
                if value is not None and part in own:
                    state_dict[f"{prefix}.combination.{own[part]}.{kind}"] = value
