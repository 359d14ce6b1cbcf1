"""The recurrent cell of context-aware layers, CA-RNN."""

import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.steps import StepOrder
from docnmt_fairseq.ca_layers.decomposition import ReportsChi, compose
from docnmt_fairseq.recurrent.ca_rnn_steps import ContextAwareSteps
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, RecurrentCell, State


@RECURRENT_CELLS.register("ca-rnn")
class ContextAwareRNN(RecurrentCell, ReportsChi):
    """c_t = f_t v_t + (1 − f_t) c'_t and y_t = o_t v°_t + (1 − o_t) c°_t ([Z] eq. 34 and 36); h_v = h_c = tanh.

    The gates f_t and o_t are scalars, the peephole p_v of v_t to c_{t−1} a vector. A state is (y_t, c_t). Of the two
    mixtures that of the cell is reported: χ of a token is f_t, the share of v_t. Its parameters are rows of stacked
    ones, which no optimiser can train apart: updates do not alternate here.

    What goes into the six sums of a step is stacked, so that each of x_t, y_{t−1}, c_{t−1} and c_t is multiplied once;
    the sums stand in the order c'_t, v_t, c°_t, v°_t (d each), o_t, f_t: v_t and c'_t do not see c_{t−1} through a
    matrix, only v°_t and o_t see c_t.
    """

    parts = 2

    def __init__(self, input_dim: int, state_dim: int):
        super().__init__(input_dim, state_dim)
        d = state_dim
        self.of_input = nn.Linear(input_dim, 4 * d + 2)  # W_c, W_v, W_c°, W_v°, w_o, w_f, and their biases
        self.of_output = nn.Parameter(torch.empty(4 * d + 2, d))  # U_c, U_v, U_c°, U_v°, u_o, u_f
        self.of_last_cell = nn.Parameter(torch.empty(2 * d + 2, d))  # V_c°, V_v, v_o, v_f
        self.of_cell = nn.Parameter(torch.empty(d + 1, d))  # Z_v, z_o
        self.peephole = nn.Parameter(torch.empty(d))  # p_v
        for parameter in self.parameters():  # as PyTorch's recurrent layers begin
            nn.init.uniform_(parameter, -(d**-0.5), d**-0.5)

    def step(self, x: Tensor, state: State) -> State:
        """(y, c); see :class:`RecurrentCell`."""
        d, (y, c) = self.state_dim, state
        sums = self.of_input(x) + y @ self.of_output.t()
        of_cell, of_output = sums.split([2 * d, 2 * d + 2], dim=1)
        of_output = of_output + c @ self.of_last_cell.t()
        f = self.indicator(of_output[:, -1:])
        v = torch.tanh(of_cell[:, d:] + self.peephole * c)
        c = compose(f, v, torch.tanh(of_cell[:, :d]))
        of_v, of_o = (c @ self.of_cell.t()).split([d, 1], dim=1)
        v = torch.tanh(of_output[:, d : 2 * d] + of_v)
        return compose(torch.sigmoid(of_output[:, -2:-1] + of_o), v, torch.tanh(of_output[:, :d])), c

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        """[N, d]; see :class:`RecurrentCell`."""
        linear = self.of_input
        weights = (linear.weight, linear.bias, self.of_output, self.of_last_cell, self.of_cell, self.peephole)
        # Steps are in place, all of one type: under autocast that of the weights.
        x, y, c = (part.to(linear.weight.dtype) for part in (x, *initial))
        outputs, f = ContextAwareSteps.apply(x, y, c, *weights, order)
        self.show(lambda: f.index_select(0, order.places))
        return outputs
