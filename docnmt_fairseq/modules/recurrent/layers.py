"""Recurrent layers one above the other, over packed rows."""

import torch
from torch import Tensor, nn

from docnmt_fairseq.modules.recurrent.contract import RECURRENT_CELLS
from docnmt_fairseq.modules.recurrent.steps import StepOrder
from docnmt_fairseq.ragged import Ragged


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
        self.forwards = nn.ModuleList(kind(width, state_dim) for width in widths)
        self.backwards = nn.ModuleList(kind(width, state_dim) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.output_dim = 2 * state_dim

    def forward(self, x: Tensor, rows: Ragged) -> Tensor:
        """Returns the last layer's [N, 2 · state_dim] from packed x [N, input_dim]."""
        orders = StepOrder(rows), StepOrder(rows, reverse=True)
        for number, cells in enumerate(zip(self.forwards, self.backwards)):
            x = self.dropout(x) if number else x
            x = torch.cat([cell.sequence(x, order) for cell, order in zip(cells, orders)], dim=-1)
        return x


SUMMARIES = ("mean", "last-backward")


def summary(states: Tensor, rows: Ragged, kind: str) -> Tensor:
    """Returns one vector a row [R, 2 · d, or d] from the states h [N, 2 · d] of bidirectional layers.

    Args:
        states: see above.
        rows: their rows.
        kind: of ``SUMMARIES``; mean: of the states; last-backward: h←_1, which has read the whole row.
    """
    if kind == "mean":
        return rows.sum(states) / rows.lengths_tensor[:, None].to(states.dtype)
    first = torch.as_tensor(rows.offsets[:-1], device=states.device)
    return states.index_select(0, first)[:, states.size(1) // 2 :]
