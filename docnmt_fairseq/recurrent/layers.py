"""Layers of recurrent cells: bidirectional layers of an encoder; a cell with attention and deep output of a decoder."""

from abc import ABC, abstractmethod
from typing import Callable, List, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.layers.base import ModulesOf, projection
from docnmt_fairseq.options import Choices
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, RecurrentCell, State, StepOrder, StepsOfTokens

SUMMARIES = Choices(("mean", "last-backward"))
CONDITIONAL_GRU = "conditional-gru"  # a cell of decoders only, in addition to ``RECURRENT_CELLS``
ATTENDING_STATES = Choices(("previous", "updated"))
QUERIES = Choices(("output", "cell"))
DEEP_OUTPUTS = Choices(("tanh", "maxout", "state"))
# Maps queries [B, d] to context vectors [B, d_c] and the shares of the sources in them, [B, K].
Attend = Callable[[Tensor], Tuple[Tensor, Tensor]]


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


def summary(states: Tensor, rows: Ragged, kind: str) -> Tensor:
    """One vector per row, [R, 2 · d or d], from the states h [N, 2 · d] of bidirectional layers.

    Args:
        kind: a name in ``SUMMARIES``: the mean of the states, or h←_1, which has read the whole row.
    """
    if kind == "mean":
        return rows.mean(states)
    first = rows.lengths_tensor.cumsum(0) - rows.lengths_tensor
    return states.index_select(0, first)[:, states.size(1) // 2 :]


class AttentiveCell(nn.Module, ABC):
    """Contract: a recurrent step with one attention.

    Attributes:
        cell: recurrent cell that computes the next state and defines the form of states.
        carried: width of an additional last part of the state, initially zeros; 0: none.
        query: part of the state that is the attention's query: 0 the output, -1 the cell state.
    """

    cell: RecurrentCell
    carried = 0
    query = 0

    @property
    def widths(self) -> List[int]:
        """Widths of the parts of a state, the carried one last."""
        return [self.cell.state_dim] * self.cell.parts + [self.carried] * bool(self.carried)

    @abstractmethod
    def forward(self, y: Tensor, state: State, attend: Attend) -> Tuple[State, Tensor, Tensor]:
        """Next state s_i, context vector c_i [B, d_c] and its shares.

        Args:
            y: [B, d_y] embedded tokens y_{i−1}.
            state: s_{i−1}.
            attend: the attention, called once.
        """


class AttendFirst(AttentiveCell):
    """c_i from s_{i−1}, then s_i = cell([y_{i−1}; c_i], s_{i−1}) (Bahdanau et al. 2015, A.1.2).

    Args:
        cell: name in ``RECURRENT_CELLS``.
        query: a name in ``QUERIES``: the cell's output, or its cell state.
    """

    def __init__(self, cell: str, input_dim: int, context_dim: int, state_dim: int, query: str = "output"):
        super().__init__()
        self.cell = RECURRENT_CELLS[cell](input_dim + context_dim, state_dim)
        self.query = 0 if query == "output" else -1

    def forward(self, y: Tensor, state: State, attend: Attend) -> Tuple[State, Tensor, Tensor]:
        context, shares = attend(state[self.query])
        return self.cell.step(torch.cat([y, context], dim=-1), state), context, shares


class AttendUpdated(AttendFirst):
    """s_i = cell([y_i; c_{i−1}], s_{i−1}), then c_i from s_i, c_0 = 0 ([L] eq. 1-5, whose y_i is the step's input).

    [L] attends with the updated state and feeds the context vector to the decoder, hence to the next step; the state
    carries it. For the arguments see :class:`AttendFirst`.
    """

    def __init__(self, cell: str, input_dim: int, context_dim: int, state_dim: int, query: str = "output"):
        super().__init__(cell, input_dim, context_dim, state_dim, query)
        self.carried = context_dim

    def forward(self, y: Tensor, state: State, attend: Attend) -> Tuple[State, Tensor, Tensor]:
        *before, last_context = state
        after = self.cell.step(torch.cat([y, last_context], dim=-1), tuple(before))
        context, shares = attend(after[self.query])
        return (*after, context), context, shares


class ConditionalGRU(AttentiveCell):
    """s'_i = GRU_1(y_{i−1}, s_{i−1}), c_i from s'_i, s_i = GRU_2(c_i, s'_i) (Firat and Cho 2016, eq. 1-12)."""

    def __init__(self, input_dim: int, context_dim: int, state_dim: int):
        super().__init__()
        self.before = RECURRENT_CELLS["gru"](input_dim, state_dim)
        self.cell = RECURRENT_CELLS["gru"](context_dim, state_dim)

    def forward(self, y: Tensor, state: State, attend: Attend) -> Tuple[State, Tensor, Tensor]:
        state = self.before.step(y, state)
        context, shares = attend(state[0])
        return self.cell.step(context, state), context, shares


def attentive_cell(
    name: str, input_dim: int, context_dim: int, state_dim: int, attend_with: str = "previous", query: str = "output"
) -> AttentiveCell:
    """Returns the cell with attention of a name in ``RECURRENT_CELLS``, or ``CONDITIONAL_GRU``.

    The conditional GRU ignores ``attend_with``, a name in ``ATTENDING_STATES``, because it attends between its steps,
    and ``query``, because its states have one part.
    """
    if name == CONDITIONAL_GRU:
        return ConditionalGRU(input_dim, context_dim, state_dim)
    kind = AttendUpdated if attend_with == "updated" else AttendFirst
    return kind(name, input_dim, context_dim, state_dim, query)


def plain_cell(name: str) -> str:
    """Returns the cell of the decoder layers above the attending one, a name in ``RECURRENT_CELLS``."""
    return "gru" if name == CONDITIONAL_GRU else name


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
