"""Combinations without a distribution over sources: ``concatenation``, ``parallel`` and ``serial``."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.multisource.source_attention import SeparateAttentions


@ATTENTION_COMBINATIONS.register("concatenation")
class Concatenation(SeparateAttentions):
    """c_i = U [c_i^{(1)}; …; c_i^{(K)}] + b (Zoph and Knight 2016); whole, as [L] sec. 3 has it: without U and b."""

    def __init__(self, config: CombinationConfig):
        super().__init__(config)
        width = sum(attention.width for attention in self.attentions)
        self.project: nn.Module = nn.Identity()
        if config.concatenated_contexts == "whole":
            self.output_dim = width
        else:
            self.project = projection(width, config.output_dim, zero_bias=True)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        contexts, shares = self.attend(x, projected, paddings)
        return self.project(torch.cat(contexts, dim=-1)), torch.stack(shares, dim=-1)


@ATTENTION_COMBINATIONS.register("parallel")
class Parallel(SeparateAttentions):
    """c_i = Σ_k c_i^{(k)}, each projected to d_c (Libovický, Helcl and Mareček 2018, the parallel strategy)."""

    def __init__(self, config: CombinationConfig):
        super().__init__(config, config.output_dim)

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        contexts, shares = self.attend(x, projected, paddings)
        return torch.stack(contexts).sum(0), torch.stack(shares, dim=-1)


@ATTENTION_COMBINATIONS.register("serial")
class Serial(SeparateAttentions):
    """c_i = Σ_k c_i^{(k)}, where source k is asked by LayerNorm(s_i + Σ_{j<k} c_i^{(j)}), the first by s_i.

    The serial strategy of Libovický, Helcl and Mareček (2018): one attention sub-layer after another, each with its
    residual connection. Whoever adds c_i to s_i has the last residual. (Where s_i is a normalised state, in pre-norm
    Transformers, it is this one that the later sub-layers start from.)
    """

    def __init__(self, config: CombinationConfig):
        super().__init__(config, config.output_dim)
        self.norms = nn.ModuleList(nn.LayerNorm(config.query_dim) for _ in config.source_dims[1:])

    @classmethod
    def problems(cls, config: CombinationConfig) -> List[str]:
        """What cannot be built; see :class:`AttentionCombination`."""
        found = super().problems(config)
        if config.query_dim != config.output_dim:
            widths = f"{config.output_dim} and {config.query_dim}"
            reason = f"serial adds context vectors to decoder states, but they are {widths} wide"
            found.append(f"--attention-combination: {reason}")
        return found

    def forward(
        self, x: Tensor, projected: List[Tensor], paddings: List[Tensor], evidence: Optional[Tensor] = None
    ) -> Tuple[Tensor, Tensor]:
        """[S, b, d_c] and [S, b, K]; see :class:`AttentionCombination`."""
        total, shares = torch.zeros_like(x), []
        for number, (attend, one, padding) in enumerate(zip(self.attentions, projected, paddings)):
            query = x if number == 0 else self.norms[number - 1](x + total)
            context, share = attend(query, one, padding)
            total = total + context
            shares.append(share)
        return total, torch.stack(shares, dim=-1)
