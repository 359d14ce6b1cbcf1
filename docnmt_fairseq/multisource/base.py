"""The contract of attention combinations, for recurrent and Transformer decoders alike, and their registry."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from torch import Tensor, nn

from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import Choices, flag_of
from docnmt_fairseq.registry import Registry

CONTEXTS = Choices(("projected", "whole"))


@dataclass(frozen=True)
class CombinationConfig:
    """What a combination is built from.

    Attributes:
        query_dim: d_q, width of the decoder's states s_i.
        source_dims: d_k of every source's states.
        output_dim: d_c, width of the context vector c_i.
        combination_attention: how states of one source are attended to, a name in ``ATTENTION_SCORES``.
        score_dim: width of the space that scores are computed in, where the score has one; with shared projections
            that space is the one of context vectors, of width d_c.
        heads: of the attention, where it has several.
        dropout: of attention weights.
        share_combination_projections: U_c = U_a (flat), U_c = U_b (hierarchical).
        attention_sentinel: whether the decoder's own state takes part ([L] eq. 4-5).
        evidence_dim: width of what the sentinel's gate is computed from; only with a sentinel.
        chi_dim: width of what χ of CA-ATT reads, which states have behind the d_k that are added up; 0: χ reads those.
        concatenated_contexts: a name in ``CONTEXTS``: whether concatenation projects to d_c, or gives all whole.
    """

    query_dim: int
    source_dims: Tuple[int, ...]
    output_dim: int
    combination_attention: str = "bahdanau"
    score_dim: int = 512
    heads: int = 1
    dropout: float = 0.0
    share_combination_projections: bool = False
    attention_sentinel: bool = False
    evidence_dim: int = 0
    concatenated_contexts: str = "projected"
    chi_dim: int = 0

    def key_dims(self) -> Tuple[int, ...]:
        """Of what energies are computed from, of every source."""
        return (self.chi_dim,) * len(self.source_dims) if self.chi_dim else self.source_dims

    def parts(self, states: Tensor) -> Tuple[Tensor, Tensor]:
        """What energies are computed from, and what is added up, of states [..., d_k] or [..., d_k + chi_dim]."""
        if not self.chi_dim:
            return states, states
        return states[..., -self.chi_dim :], states[..., : -self.chi_dim]


class AttentionCombination(nn.Module):
    """Contract: ``cls(config)``. Sentences are rows; each has its states of every source and some queries.

    What depends on the sources alone is computed once (:meth:`project_sources`) and serves every step and hypothesis.

    Class attributes:
        divides: whether it has a distribution over the sources, in which a sentinel can take part, and which is
            computed from projections that context vectors can share.

    Attributes:
        output_dim: width of context vectors: that of the configuration, unless it says otherwise.
    """

    divides = False

    def __init__(self, config: CombinationConfig):
        super().__init__()
        found = self.problems(config)
        if found:
            raise ValueError("; ".join(found))
        self.output_dim = config.output_dim

    @classmethod
    def problems(cls, config: CombinationConfig) -> List[str]:
        """What cannot be built, by the options' flags."""
        name = config.combination_attention
        if name not in ATTENTION_SCORES:
            return [f"--combination-attention {name}: must be one of {', '.join(ATTENTION_SCORES.names())}"]
        found = []
        if ATTENTION_SCORES[name].multi_head and config.query_dim % config.heads:
            width = f"the width {config.query_dim} of the decoder"
            found.append(f"--decoder-attention-heads: {config.heads} do not divide {width}")
        if config.chi_dim and not ATTENTION_SCORES[name].context_free:
            found.append(f"{flag_of('chi_embed_dim')}: {name} has no context-free indicator, as scores ca-att… have")
        if config.chi_dim and config.share_combination_projections:
            found.append(f"{flag_of('share_combination_projections')}: energies are of other embeddings")
        for field in ("share_combination_projections", "attention_sentinel"):
            if getattr(config, field) and not cls.divides:
                found.append(
                    f"{flag_of(field)}: there is no distribution over sources, as flat and hierarchical have it"
                )
        return found

    @classmethod
    def reads_score_dim(cls, config: CombinationConfig) -> bool:
        """Whether any of its scores is computed in a space of width ``score_dim``."""
        return ATTENTION_SCORES[config.combination_attention].own_space

    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        """What is attended to of every source, [..., w_k], from its states [..., d_k], each state by itself."""
        raise NotImplementedError

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Context vectors [S, b, d_c], and how they divide over the sources, [S, b, K], with sentinel K + 1.

        A source of which a sentence has nothing gets exactly zero. The shares add up to 1 where the combination has
        a distribution over sources; where it attends to each by itself, each is 1. With CA-ATT in place of a
        distribution over states, what is missing is the share of v(c).

        Args:
            x: [S, b, d_q] decoder states, e.g. of b hypotheses of each sentence, or of all its b tokens.
            projected: [S, n_k, w_k] of :meth:`project_sources`, of every source.
            paddings: [S, n_k] True at padding, all of it where a sentence has nothing of a source; or [S, b, n_k],
                where queries of one row see different states.
            evidence: [S, b, d_e] what the sentinel's gate is computed from, [y_i; s_{i−1}]; only with a sentinel.
        """
        raise NotImplementedError

    def main_source(self) -> Dict[str, str]:
        """Which parameters are those of an ordinary attention to the first source, by fairseq's names.

        E.g. ``{"q_proj": "score.query", …}``: where a model of one source can be a starting point; else empty.
        """
        return {}


ATTENTION_COMBINATIONS: Registry[AttentionCombination] = Registry("attention combination")


def sharing_problems(score: str, config: CombinationConfig) -> List[str]:
    """Why context vectors cannot be made by the projections of that score's keys, if so."""
    width = ATTENTION_SCORES[score].width_of_keys(config.query_dim, config.output_dim)
    if not config.share_combination_projections or ATTENTION_SCORES[score].multi_head or width == config.output_dim:
        return []
    flag = flag_of("share_combination_projections")
    return [f"{flag}: {score} computes with projections of width {width}, not {config.output_dim}"]
