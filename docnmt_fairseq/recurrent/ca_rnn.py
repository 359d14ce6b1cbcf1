"""CA-RNN, the recurrent cell of context-aware layers."""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from docnmt_fairseq.ca_layers.decomposition import ReportsChi, compose
from docnmt_fairseq.layers.precision import without_autocast
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS, RecurrentCell, State, StepOrder


@RECURRENT_CELLS.register("ca-rnn")
class ContextAwareRNN(RecurrentCell, ReportsChi):
    """c_t = f_t v_t + (1 − f_t) c'_t and y_t = o_t v°_t + (1 − o_t) c°_t ([Z] eq. 34 and 36); h_v = h_c = tanh.

    The gates f_t and o_t are scalars, the peephole p_v of v_t to c_{t−1} is a vector. A state is (y_t, c_t). The
    recorded χ of a token is f_t, the share of v_t. χ has no parameters of its own (they are rows of stacked matrices),
    so CA-RNN does not take part in alternating updates.

    The six sums of a step are stacked, so that x_t, y_{t−1}, c_{t−1} and c_t are each multiplied once, in the order
    c'_t, v_t, c°_t, v°_t (d each), o_t, f_t. v_t and c'_t do not read c_{t−1} through a matrix; only v°_t and o_t read
    c_t.
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
        for parameter in self.parameters():  # as in PyTorch's recurrent layers
            nn.init.uniform_(parameter, -(d**-0.5), d**-0.5)

    def step(self, x: Tensor, state: State) -> State:
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
        linear = self.of_input
        weights = (linear.weight, linear.bias, self.of_output, self.of_last_cell, self.of_cell, self.peephole)
        # The loop works in place in one type, under autocast that of the weights.
        x, y, c = (part.to(linear.weight.dtype) for part in (x, *initial))
        outputs, f = ContextAwareSteps.apply(x, y, c, *weights, order)
        self.show(lambda: f.index_select(0, order.places))
        return outputs


tanh_backward = torch.ops.aten.tanh_backward


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x weightᵀ, [M, N] from [M, K] and [N, K], in their type, also under autocast."""
    with without_autocast(x):
        return F.linear(x, weight)


def step_slices(order: StepOrder) -> List[slice]:
    """Slice of each step in tensors in step order."""
    slices, start = [], 0
    for size in order.sizes:
        slices.append(slice(start, start + size))
        start += size
    return slices


class ContextAwareSteps(torch.autograd.Function):
    """The outputs y of [Z] eq. 34 and 36 for whole rows, with weights stacked as in :class:`ContextAwareRNN`.

    The loop does only what depends on the previous step, in place: three products and few passes over its rows. The
    inputs' part of all sums is one product before the loop; each weight gradient is one product after it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        c: Tensor,
        of_input: Tensor,
        bias: Tensor,
        of_output: Tensor,
        of_last_cell: Tensor,
        of_cell: Tensor,
        peephole: Tensor,
        order: StepOrder,
    ) -> Tuple[Tensor, Tensor]:
        """y [N, d] and, without gradient, f [N]; all tensors are in step order.

        Args:
            x: [N, input_dim].
            y, c: [R, d] initial state.
            of_input, bias: [4 d + 2, input_dim] and [4 d + 2].
            of_output, of_last_cell, of_cell, peephole: [4 d + 2, d], [2 d + 2, d], [d + 1, d], [d].
        """
        d = y.size(1)
        initial = (y, c)
        cells, outputs = x.new_empty(len(x), d), x.new_empty(len(x), d)
        values = product(x, of_input).add_(bias)  # the sums, then in place their activations
        for step in step_slices(order):
            size = step.stop - step.start
            y, c, value = y[:size], c[:size], values[step]
            value.add_(product(y, of_output))
            value[:, 2 * d :].add_(product(c, of_last_cell))
            value[:, d : 2 * d].addcmul_(c, peephole)
            value[:, : 2 * d].tanh_()
            value[:, -1:].sigmoid_()
            c = torch.lerp(value[:, :d], value[:, d : 2 * d], value[:, -1:], out=cells[step])
            value[:, 3 * d : -1].add_(product(c, of_cell))
            value[:, 2 * d : -2].tanh_()
            value[:, -2:-1].sigmoid_()
            y = torch.lerp(value[:, 2 * d : 3 * d], value[:, 3 * d : -2], value[:, -2:-1], out=outputs[step])
        ctx.order = order
        ctx.save_for_backward(values, cells, outputs, x, *initial, of_input, of_output, of_last_cell, of_cell, peephole)
        gates = values[:, -1].clone()
        ctx.mark_non_differentiable(gates)
        return outputs, gates

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_outputs: Tensor, *of_gates: Tensor) -> Tuple[Optional[Tensor], ...]:
        """Gradients of the inputs of :meth:`forward`."""
        values, cells, outputs, x, y0, c0, of_input, *weights, peephole = ctx.saved_tensors
        before, d = ctx.order.before, y0.size(1)
        last_cells = torch.cat([c0, cells.index_select(0, before)])
        last_outputs = torch.cat([y0, outputs.index_select(0, before)])
        grads = torch.empty_like(values)  # of the sums
        to_output, to_last_cell, to_cell = (weight.t().contiguous() for weight in weights)
        dy_later, dc_later = values.new_empty(0, d), values.new_empty(0, d)
        for step in reversed(step_slices(ctx.order)):
            value, grad, later = values[step], grads[step], len(dy_later)
            of_cells, of_outs, gates = value.split([2 * d, 2 * d, 2], dim=1)
            o, f = gates[:, :1], gates[:, 1:]
            d_cells, d_outs, d_gates = grad.split([2 * d, 2 * d, 2], dim=1)

            dy = of_outputs[step].clone()
            dy[:later] += dy_later
            torch.mul(dy, o, out=d_outs[:, d:])
            torch.sub(dy, d_outs[:, d:], out=d_outs[:, :d])
            difference = of_outs[:, d:] - of_outs[:, :d]
            torch.sum(difference.mul_(dy), 1, keepdim=True, out=d_gates[:, :1])
            d_gates[:, :1].mul_(o).mul_(1 - o)
            tanh_backward.grad_input(d_outs, of_outs, grad_input=d_outs)

            dc = product(grad[:, 3 * d : -1], to_cell)
            dc[:later] += dc_later
            torch.mul(dc, f, out=d_cells[:, d:])
            torch.sub(dc, d_cells[:, d:], out=d_cells[:, :d])
            difference = torch.sub(of_cells[:, d:], of_cells[:, :d], out=difference)
            torch.sum(difference.mul_(dc), 1, keepdim=True, out=d_gates[:, 1:])
            d_gates[:, 1:].mul_(f).mul_(1 - f)
            tanh_backward.grad_input(d_cells, of_cells, grad_input=d_cells)

            dc_later = product(grad[:, 2 * d :], to_last_cell).addcmul_(d_cells[:, d:], peephole)
            dy_later = product(grad, to_output)
        d_peephole = (grads[:, d : 2 * d] * last_cells).sum(0)
        sums = grads.t().contiguous()
        seen = ((sums, x), (sums, last_outputs), (sums[2 * d :], last_cells), (sums[3 * d : -1], cells))
        d_input, *d_weights = (product(of_sums, tensor.t()) for of_sums, tensor in seen)
        d_x = product(grads, of_input.t()) if ctx.needs_input_grad[0] else None
        return d_x, dy_later, dc_later, d_input, grads.sum(0), *d_weights, d_peephole, None
