"""Recurrent layers one above the other, over packed rows."""

from typing import List, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.batch.steps import StepOrder, StepsOfTokens
from docnmt_fairseq.layers.initialisation import projection
from docnmt_fairseq.layers.modules import ModulesOf
from docnmt_fairseq.options import Choices
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS


class BidirectionalLayers(nn.Module):
    """Layers that each read rows from both ends: h_j = [h→_j; h←_j]. A row is read by itself, without padding.

    Args:
        cell: name in ``RECURRENT_CELLS``.
        input_dim: width of what is read.
        state_dim: of one direction; outputs are twice as wide.
        layers: how many.
        dropout: between layers.
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
        """The last layer's [N, 2 · state_dim] from packed x [N, input_dim]."""
        orders = [layout.plan(key) for key in self.plans()]
        for number, cells in enumerate(zip(self.forwards, self.backwards)):
            x = self.dropout(x) if number else x
            x = torch.cat([cell.sequence(x, order) for cell, order in zip(cells, orders)], dim=-1)
        return x

    def plans(self) -> List[PlanKey[StepOrder]]:
        """The plans that ``forward`` asks a layout for: the tokens forwards and backwards."""
        return [StepsOfTokens(), StepsOfTokens(reverse=True)]


SUMMARIES = Choices(("mean", "last-backward"))


def summary(states: Tensor, rows: Ragged, kind: str) -> Tensor:
    """One vector a row [R, 2 · d, or d] from the states h [N, 2 · d] of bidirectional layers.

    Args:
        states: see above.
        rows: their rows.
        kind: of ``SUMMARIES``; mean: of the states; last-backward: h←_1, which has read the whole row.
    """
    if kind == "mean":
        return rows.mean(states)
    first = rows.lengths_tensor.cumsum(0) - rows.lengths_tensor
    return states.index_select(0, first)[:, states.size(1) // 2 :]


DEEP_OUTPUTS = Choices(("tanh", "maxout", "state"))


class DeepOutput(nn.Module):
    """t_i = tanh(W_s s_i + W_y y_{i−1} + W_c c_i + b); maxout: the larger one of each pair of twice as many sums.

    state: t_i = s_i, as [Z] Fig. 11 has it: nothing but the cell's output.

    (In Bahdanau et al. 2015, A.2.2, it is s_{i−1} that is seen; its own code and later ones take s_i.)

    Args:
        state_dim: of s_i.
        input_dim: of y_{i−1}.
        context_dim: of c_i.
        output_dim: of t_i.
        kind: of ``DEEP_OUTPUTS``.
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
