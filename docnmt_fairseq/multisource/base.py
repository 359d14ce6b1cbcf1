"""Contract and registry of attention combinations, which serve recurrent and Transformer decoders alike."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import Choices
from docnmt_fairseq.registry import Registry

CONTEXTS = Choices(("projected", "whole"))


@dataclass(frozen=True)
class CombinationConfig:
    """Sizes and options of an attention combination.

    Attributes:
        query_dim: d_q, width of the decoder states s_i.
        source_dims: d_k of each source's states.
        output_dim: d_c, width of the context vector c_i.
        combination_attention: attention to the states of one source, a name in ``ATTENTION_SCORES``.
        score_dim: width of the space of an additive score; with shared projections it is d_c instead.
        heads: number of attention heads, for multi-head scores.
        dropout: dropout of attention weights.
        share_combination_projections: U_c = U_a (flat), U_c = U_b (hierarchical).
        attention_sentinel: adds the decoder's own state to the attention ([L] eq. 4-5).
        evidence_dim: input width of the sentinel's gate; only with a sentinel.
        concatenated_contexts: a name in ``CONTEXTS``: project the concatenation to d_c, or keep it whole.
        chi_dim: width of separate embeddings that χ of CA-ATT reads, appended to the d_k summed features; 0: none.
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
        """Input widths of the energies, one per source."""
        return (self.chi_dim,) * len(self.source_dims) if self.chi_dim else self.source_dims

    def split_states(self, states: Tensor) -> Tuple[Tensor, Tensor]:
        """Inputs of energies and of values, from states [..., d_k] or [..., d_k + chi_dim]."""
        if not self.chi_dim:
            return states, states
        return states[..., -self.chi_dim :], states[..., : -self.chi_dim]


class AttentionCombination(nn.Module, ABC):
    """Contract: ``cls(config)``. A batch row is a sentence, with its states of every source and some queries.

    Computations that depend on the sources alone run once (:meth:`project_sources`) and serve every decoding step and
    hypothesis.

    Class attributes:
        divides: the combination has a distribution over sources. A sentinel can be part of it, unless it is flat with
            scores of CA-ATT, and context vectors can share its projections.

    Attributes:
        output_dim: width of context vectors, d_c unless the combination says otherwise.

    Raises:
        InputError: options that the combination or the scores do not support.
    """

    divides = False

    def __init__(self, config: CombinationConfig):
        super().__init__()
        if (config.attention_sentinel or config.share_combination_projections) and not self.divides:
            raise InputError(
                "--attention-sentinel, --share-combination-projections: need --attention-combination flat or "
                "hierarchical, which have a distribution over sources"
            )
        has_chi = ATTENTION_SCORES[config.combination_attention].context_free
        if config.chi_dim and (config.share_combination_projections or not has_chi):
            raise InputError("--chi-embed-dim: needs ca-att scores and no --share-combination-projections")
        self.output_dim = config.output_dim

    @abstractmethod
    def project_sources(self, states: List[Tensor]) -> List[Tensor]:
        """Keys and values [..., w_k] of every source, from its states [..., d_k], position by position."""

    @abstractmethod
    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """Context vectors [S, b, d_c], and the share of each source in them, [S, b, K], with sentinel K + 1.

        A source without states contributes exactly zero. Shares sum to 1 if the combination has a distribution over
        sources; otherwise each attended source has share 1. With CA-ATT the rest up to 1 is the share of v(c).

        Args:
            x: [S, b, d_q] decoder states, e.g. of b hypotheses per sentence, or of its b target tokens.
            projected: [S, n_k, w_k] output of :meth:`project_sources`, for every source.
            paddings: [S, n_k] True at padding, everywhere if a sentence has no such source; or [S, b, n_k] if queries
                of one row see different states.
            evidence: [S, b, d_e] input of the sentinel's gate, [y_i; s_{i−1}]; only with a sentinel.
        """

    def main_source(self) -> Dict[str, str]:
        """Names of the parameters that an ordinary attention to the first source has, by fairseq's names.

        E.g. ``{"q_proj": "score.query", …}`` if a single-source model can initialise them; otherwise empty.
        """
        return {}


ATTENTION_COMBINATIONS: Registry[AttentionCombination] = Registry("attention combination")
