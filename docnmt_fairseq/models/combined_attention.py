"""What stands in the place of a decoder layer's encoder-decoder attention where there are several sources."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple, Union

from torch import Tensor, nn

from docnmt_fairseq.models.combination_config import (
    AttentionCombinationConfig,
    attended_names,
    combination_config,
    combination_name,
)
from docnmt_fairseq.modules.attention_combination.contract import ATTENTION_COMBINATIONS
from docnmt_fairseq.modules.attention_combination.packed import CombinationPlan
from docnmt_fairseq.modules.recording import SourceShares, observer
from docnmt_fairseq.modules.source_states import SourceStates


@dataclass(frozen=True)
class PackedSources:
    """Which states of the sources packed target words see.

    Attributes:
        plan: of all sources, the main one first.
        further: [M_k, d_k] packed states of the further ones.
    """

    plan: CombinationPlan
    further: Sequence[Tensor] = ()


@dataclass(frozen=True)
class PaddedSources:
    """What the hypotheses of a search see.

    Attributes:
        memories: [layers][sources] [S, n_k, w_k], see :meth:`AttentionCombination.remember`.
        paddings: [sources] [S, n_k].
    """

    memories: List[List[Tensor]]
    paddings: List[Tensor]

    @classmethod
    def of(cls, encoder_out: Dict[str, List[Tensor]]) -> Optional["PaddedSources"]:
        """Returns what :meth:`CombinedAttention.memories` put into an encoder's output; None: there is nothing."""
        if "source_memories" not in encoder_out:
            return None
        memories, paddings = encoder_out["source_memories"], encoder_out["source_paddings"]
        starts = range(0, len(memories), len(paddings))
        return cls([memories[start : start + len(paddings)] for start in starts], paddings)


class CombinedAttention(nn.Module):
    """Attention to all sources; takes and gives what a stock layer's encoder-decoder attention does.

    Args:
        cfg: the model's options.

    Attributes:
        number: of the layer that it stands in.
    """

    def __init__(self, cfg: AttentionCombinationConfig):
        super().__init__()
        config = combination_config(cfg)
        self.combination = ATTENTION_COMBINATIONS[combination_name(cfg)](config)
        self.names = attended_names(cfg)
        self.asks_evidence = config.sentinel
        self.number = 0

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Union[PackedSources, PaddedSources],
        **unused,
    ) -> Tuple[Tensor, None]:
        """Returns context vectors of the query's shape, and no weights.

        Args:
            query: packed [N_t, 1, d], or [m_t, S · b, d] of b hypotheses of each sentence.
            key: the main source's packed states [N, 1, d]; what it is in a search is in the memories.
            value: as ``key``.
            key_padding_mask: which states of all sources are seen.
            unused: of the stock attention.
        """
        if isinstance(key_padding_mask, PackedSources):
            plan, x = key_padding_mask.plan, query.squeeze(1)
            memories = self.combination.remember([key.squeeze(1), *key_padding_mask.further])
            context, shares = plan.combine(self.combination, x, memories, x if self.asks_evidence else None)
            context = context.unsqueeze(1)
        else:
            memories, paddings = key_padding_mask.memories[self.number], key_padding_mask.paddings
            rows = query.transpose(0, 1)  # [S · b, m_t, d]
            x = rows.reshape(len(paddings[0]), -1, rows.size(-1))  # [S, b · m_t, d]
            context, shares = self.combination(x, memories, paddings, x if self.asks_evidence else None)
            context = context.view_as(rows).transpose(0, 1)
        observe = observer(self)
        if observe is not None:
            observe(SourceShares(self.names, shares.detach()))
        return context, None

    def memories(self, sources: List[SourceStates]) -> List[Tensor]:
        """Returns the memory [S, n_k, w_k] of every source, padded, for a search."""
        memories = self.combination.remember([source.states for source in sources])
        return [source.map(lambda _, memory=memory: memory).padded()[0] for source, memory in zip(sources, memories)]

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
