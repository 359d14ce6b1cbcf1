"""Recurrent cells over packed rows: step order, contract and registry; GRU and LSTM."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import List, Optional, Tuple, Type, Union

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged, ranges, set_fields
from docnmt_fairseq.registry import Registry


@dataclass(frozen=True, init=False, eq=False)
class StepOrder:
    """Rows step by step: the first items of all rows, then the second ones, …, the longest row first.

    The rows that continue are always the first ones, so there is no padding.
    """

    rows: np.ndarray  # [R] row numbers in this order
    sizes: List[int]  # [T] number of rows that have a step t
    items: Tensor  # [N] item at every position, those of step 0 first
    places: Tensor  # [N] position of every item; undefined for items of rows left out
    row_index: Tensor  # [R] the row numbers as a tensor
    before: Tensor  # [N − R] for each position from step 1 on, the position of the same row's previous step

    def __init__(self, rows: Ragged, among: Optional[np.ndarray] = None, reverse: bool = False):
        """Orders the rows.

        Args:
            among: [R] numbers of the rows to process; None: all.
            reverse: process each row from its last item to its first.
        """
        among = np.arange(rows.rows) if among is None else among
        order = among[np.argsort(-rows.lengths[among], kind="stable")]
        lengths = rows.lengths[order]
        column = np.arange(int(lengths.max(initial=0)))[:, None]  # [T, 1]
        taken = column < lengths  # [T, R]
        sizes = taken.sum(1)  # [T]
        place = lengths - 1 - column if reverse else np.broadcast_to(column, taken.shape)
        items = (rows.offsets[order] + place)[taken]
        places = np.zeros(rows.total, dtype=np.int64)
        places[items] = np.arange(len(items))
        set_fields(
            self,
            rows=order,
            sizes=sizes.tolist(),
            items=rows.index(items),
            places=rows.index(places),
            row_index=rows.index(order),
            before=rows.index(ranges((np.cumsum(sizes) - sizes)[:-1], sizes[1:])),
        )

    @property
    def batch_sizes(self) -> Tensor:
        """The sizes in the format of PyTorch's ``PackedSequence``, [T] on the CPU."""
        return torch.tensor(self.sizes, dtype=torch.int64)


@dataclass(frozen=True)
class StepsOfTokens(PlanKey[StepOrder]):
    """Steps over the tokens of each sentence, forwards or in reverse."""

    reverse: bool = False

    def make(self, layout: DocumentLayout) -> StepOrder:
        return StepOrder(layout.tokens, reverse=self.reverse)


@dataclass(frozen=True)
class StepsOfTargets(PlanKey[StepOrder]):
    """Steps over the target tokens of each sentence."""

    of_targets = True

    def make(self, layout: DocumentLayout) -> StepOrder:
        return StepOrder(layout.target_tokens)


State = Tuple[Tensor, ...]  # parts [B, d] of B rows; the first is the cell's output


class RecurrentCell(nn.Module, ABC):
    """Contract: ``cls(input_dim, state_dim)``; the same parameters serve whole rows and single steps.

    Class attributes:
        parts: number of vectors in a state.

    Attributes:
        state_dim: d.
    """

    parts = 1

    def __init__(self, input_dim: int, state_dim: int):
        super().__init__()
        self.input_dim, self.state_dim = input_dim, state_dim

    def initial(self, rows: int, like: Tensor) -> State:
        """Zero state, parts [rows, d] of the type and device of ``like``."""
        return tuple(like.new_zeros(rows, self.state_dim) for _ in range(self.parts))

    @abstractmethod
    def step(self, x: Tensor, state: State) -> State:
        """Next state of rows with inputs x [B, input_dim]."""

    def sequence(self, x: Tensor, order: StepOrder, initial: Optional[State] = None) -> Tensor:
        """Outputs [N, d] of all steps of the rows, in the order of x.

        Args:
            x: packed inputs [N, input_dim].
            order: step order of all rows.
            initial: initial state, parts [rows, d]; None: zeros.
        """
        if initial is None:
            initial = self.initial(len(order.rows), x)
        first = tuple(part.index_select(0, order.row_index) for part in initial)
        return self.run(x.index_select(0, order.items), first, order).index_select(0, order.places)

    @abstractmethod
    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        """:meth:`sequence` with inputs, states and outputs in step order."""


RECURRENT_CELLS: Registry[RecurrentCell] = Registry("recurrent cell")


class TorchCell(RecurrentCell):
    """Cell computed by one of PyTorch's recurrent layers."""

    layer: Type[Union[nn.GRU, nn.LSTM]]

    def __init__(self, input_dim: int, state_dim: int):
        super().__init__(input_dim, state_dim)
        self.rnn = self.layer(input_dim, state_dim)

    def parameters_of_step(self) -> Tuple[Tensor, ...]:
        """Weights and biases of input and state."""
        return tuple(self.rnn.all_weights[0])


@RECURRENT_CELLS.register("gru")
class GRU(TorchCell):
    """h_t = (1 − z) n + z h_{t−1}; z, r = σ(W x_t + U h_{t−1} + b), n = tanh(W x_t + b + r (U h_{t−1} + b′))."""

    layer = nn.GRU

    def step(self, x: Tensor, state: State) -> State:
        return (torch.gru_cell(x, state[0], *self.parameters_of_step()),)

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        return self.rnn(PackedSequence(x, order.batch_sizes), initial[0][None])[0].data


@RECURRENT_CELLS.register("gru-reset-before")
class GRUResetBefore(GRU):
    """:class:`GRU` with n = tanh(W x_t + b + U (r h_{t−1}) + b′) (Bahdanau et al. 2015, A.1.1; [Z] Table 1).

    The reset gate multiplies the state before the matrix, not the product as in PyTorch. Parameters have the same names
    and shapes. Computed as a loop over steps, since there is no fused layer.
    """

    def step(self, x: Tensor, state: State) -> State:
        of_input, of_state, input_bias, state_bias = self.parameters_of_step()
        return (self._next(F.linear(x, of_input, input_bias), state[0], of_state, state_bias),)

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        of_input, of_state, input_bias, state_bias = self.parameters_of_step()
        h, outputs = initial[0], []
        for sums in F.linear(x, of_input, input_bias).split(order.sizes):
            h = self._next(sums, h[: len(sums)], of_state, state_bias)
            outputs.append(h)
        return torch.cat(outputs)

    def _next(self, sums: Tensor, h: Tensor, of_state: Tensor, bias: Tensor) -> Tensor:
        """h_t from W x_t + b [B, 3 d] and h_{t−1}."""
        of_gates = 2 * self.state_dim
        gates = torch.sigmoid(sums[:, :of_gates] + F.linear(h, of_state[:of_gates], bias[:of_gates]))
        r, z = gates.chunk(2, dim=1)
        n = torch.tanh(sums[:, of_gates:] + F.linear(r * h, of_state[of_gates:], bias[of_gates:]))
        return (1 - z) * n + z * h


@RECURRENT_CELLS.register("lstm")
class LSTM(TorchCell):
    """c_t = f c_{t−1} + i g, h_t = o tanh(c_t); f, i, o = σ(W x_t + U h_{t−1} + b), g = tanh(W x_t + U h_{t−1} + b)."""

    parts = 2
    layer = nn.LSTM

    def step(self, x: Tensor, state: State) -> State:
        return tuple(torch.lstm_cell(x, state, *self.parameters_of_step()))

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        first = tuple(part[None] for part in initial)
        return self.rnn(PackedSequence(x, order.batch_sizes), first)[0].data
