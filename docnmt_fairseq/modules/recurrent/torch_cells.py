"""PyTorch's own recurrent cells."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from docnmt_fairseq.modules.recurrent.contract import RECURRENT_CELLS, RecurrentCell, State
from docnmt_fairseq.modules.recurrent.steps import StepOrder


class TorchCell(RecurrentCell):
    """A cell whose rows go through one of PyTorch's recurrent layers at once."""

    layer: type

    def __init__(self, input_dim: int, state_dim: int):
        super().__init__(input_dim, state_dim)
        self.rnn = self.layer(input_dim, state_dim)

    def parameters_of_step(self) -> "tuple[Tensor, ...]":
        """Returns the weights and biases, of the input and of the state."""
        rnn = self.rnn
        return rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_ih_l0, rnn.bias_hh_l0


@RECURRENT_CELLS.register("gru")
class GRU(TorchCell):
    """h_t = (1 − z) n + z h_{t−1}; z, r = σ(W x_t + U h_{t−1} + b), n = tanh(W x_t + b + r (U h_{t−1} + b′))."""

    layer = nn.GRU

    def step(self, x: Tensor, state: State) -> State:
        """Returns (h,); see :class:`RecurrentCell`."""
        return (torch.gru_cell(x, state[0], *self.parameters_of_step()),)

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        """Returns [N, d]; see :class:`RecurrentCell`."""
        return self.rnn(PackedSequence(x, order.batch_sizes), initial[0][None])[0].data


@RECURRENT_CELLS.register("lstm")
class LSTM(TorchCell):
    """c_t = f c_{t−1} + i g, h_t = o tanh(c_t); f, i, o = σ(W x_t + U h_{t−1} + b), g = tanh(W x_t + U h_{t−1} + b)."""

    parts = 2
    layer = nn.LSTM

    def step(self, x: Tensor, state: State) -> State:
        """Returns (h, c); see :class:`RecurrentCell`."""
        return tuple(torch.lstm_cell(x, state, *self.parameters_of_step()))

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        """Returns [N, d]; see :class:`RecurrentCell`."""
        first = tuple(part[None] for part in initial)
        return self.rnn(PackedSequence(x, order.batch_sizes), first)[0].data
