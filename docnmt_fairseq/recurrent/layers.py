"""Stacked bidirectional layers over packed rows, and the deep output of a decoder."""

from typing import List, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.layers.base import ModulesOf, projection
from docnmt_fairseq.options import Choices
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, StepOrder, StepsOfTokens


class BidirectionalLayers(nn.Module):
    """Stacked bidirectional layers, h_j = [h→_j; h←_j], without padding and independent between rows.

    Args:
        state_dim: width of one direction; outputs are twice as wide.
    """

    def __init__(self, cell: str, input_dim: int, state_dim: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        widths = [input_dim, *[2 * state_dim] * (layers - 1)]
        kind = RECURRENT_CELLS[cell]
        self.forwards = ModulesOf(kind(width, state_dim) for width in widths)
        self.backwards = ModulesOf(kind(width, state_dim) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.output_dim = 2 * state_dim

    def forward(self, x: Tensor, layout: DocumentLayout) -> Tensor:
        """Outputs [N, 2 · state_dim] of the last layer, from packed x [N, input_dim]."""
        orders = [layout.plan(key) for key in self.plans()]
        for number, cells in enumerate(zip(self.forwards, self.backwards)):
            x = self.dropout(x) if number else x
            x = torch.cat([cell.sequence(x, order) for cell, order in zip(cells, orders)], dim=-1)
        return x

    def plans(self) -> List[PlanKey[StepOrder]]:
        """Plans that ``forward`` uses: step orders in both directions."""
        return [StepsOfTokens(), StepsOfTokens(reverse=True)]


SUMMARIES = Choices(("mean", "last-backward"))


def summary(states: Tensor, rows: Ragged, kind: str) -> Tensor:
    """One vector per row, [R, 2 · d or d], from the states h [N, 2 · d] of bidirectional layers.

    Args:
        kind: a name in ``SUMMARIES``: the mean of the states, or h←_1, which has read the whole row.
    """
    if kind == "mean":
        return rows.mean(states)
    first = rows.lengths_tensor.cumsum(0) - rows.lengths_tensor
    return states.index_select(0, first)[:, states.size(1) // 2 :]


DEEP_OUTPUTS = Choices(("tanh", "maxout", "state"))


class DeepOutput(nn.Module):
    """t_i = tanh(W_s s_i + W_y y_{i−1} + W_c c_i + b); ``maxout``: pairwise maxima of 2 · output_dim sums.

    ``state``: t_i = s_i, the cell's output alone ([Z] Fig. 11). (Bahdanau et al. 2015, A.2.2 print s_{i−1}; their code
    uses s_i.)
    """

    def __init__(self, state_dim: int, input_dim: int, context_dim: int, output_dim: int, kind: str = "tanh"):
        super().__init__()
        self.kind, self.maxout = kind, kind == "maxout"
        width = state_dim + input_dim + context_dim
        self.sums: Optional[nn.Linear] = None
        if kind != "state":
            self.sums = projection(width, output_dim * (2 if self.maxout else 1), zero_bias=True)

    def forward(self, s: Tensor, y: Tensor, c: Tensor) -> Tensor:
        """t_i [..., output_dim]."""
        if self.sums is None:
            return s
        sums = self.sums(torch.cat([s, y, c], dim=-1))
        return sums.unflatten(-1, (-1, 2)).amax(-1) if self.maxout else torch.tanh(sums)
