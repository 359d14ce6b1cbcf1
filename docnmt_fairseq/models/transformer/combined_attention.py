"""Attention of a decoder layer to several sources."""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from torch import Tensor, nn

from docnmt_fairseq.batch.layout import PlanKey
from docnmt_fairseq.batch.sources import OfSentence, SourceKey
from docnmt_fairseq.layers.capture import SourceShares, observer
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.extra_sources import attended_names, attention_combination
from docnmt_fairseq.models.transformer.config import DocumentTransformerOptions, combination_name
from docnmt_fairseq.multisource.packed import TargetsToAllSources, padded_sources


class CombinedAttention(nn.Module):
    """Attention to all sources by an attention combination; used like ``SingleSourceAttention``.

    The evidence of a Transformer's sentinel is the state s_i: after self-attention it contains what [L] eq. 4 takes
    from the previous token and state.

    Args:
        cfg: options of the model.
        extra_rows: keys of the plans that map decoded sentences to the states of each extra source.
    """

    def __init__(self, cfg: DocumentTransformerOptions, extra_rows: Sequence[SourceKey]):
        super().__init__()
        self.key = TargetsToAllSources((OfSentence(), *extra_rows))
        self.names = attended_names(cfg, cfg.attention_sentinel)
        self.with_evidence = cfg.attention_sentinel
        source_dims, width = (cfg.encoder_embed_dim,) * len(attended_names(cfg)), cfg.decoder_embed_dim
        self.combination = attention_combination(
            cfg, str(combination_name(cfg)), width,
            query_dim=width, source_dims=source_dims, output_dim=width, score_dim=width,
        )  # fmt: skip

    def plans(self) -> Iterator[PlanKey[Any]]:
        """Plans that :meth:`attend_packed` uses."""
        yield self.key

    def attend_packed(self, x: Tensor, sources: EncoderOutputs) -> Tensor:
        """Attention output [N_t, d] of packed target tokens x [N_t, d]."""
        projected = self.combination.project_sources(sources.all_states)
        plan = sources.layout.plan(self.key)
        return self.record(*plan.combine(self.combination, x, projected, x if self.with_evidence else None))

    def project_sources(self, sources: EncoderOutputs) -> List[Tensor]:
        """Keys and values of every source, [S, n, w], then their masks [S, n, 1]."""
        projected = sources.per_batch(self, lambda: self.combination.project_sources(sources.all_states))
        padded, paddings = padded_sources(sources.by_source, projected, sources.layout, sources.taken)
        return [*padded, *(~padding[..., None] for padding in paddings)]

    def attend_hypotheses(
        self, x: Tensor, projected: List[Tensor], weights: bool = False
    ) -> Tuple[Tensor, Optional[Tensor]]:
        """Attention output [S, b, d] of x [S, b, d]; combinations do not expose weights."""
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
