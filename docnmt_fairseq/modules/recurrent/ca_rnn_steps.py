"""CA-RNN over whole rows: a loop over the steps that does only what depends on the step before.

The inputs' part of all sums is there before, in one product; the weights' gradients come after, in one product each.
Between them a step forward is three products and eight passes over its rows, in place.
"""

from typing import List, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from docnmt_fairseq.modules.recurrent.steps import StepOrder

tanh_backward = torch.ops.aten.tanh_backward


def step_slices(order: StepOrder) -> List[slice]:
    """Returns the places of every step."""
    slices, start = [], 0
    for size in order.sizes:
        slices.append(slice(start, start + size))
        start += size
    return slices


class ContextAwareSteps(torch.autograd.Function):
    """The outputs y of [Z] eq. 34 and 36 from the inputs' part of their sums, stacked as in ``ContextAwareRNN``."""

    @staticmethod
    def forward(
        ctx: object,
        sums: Tensor,
        y: Tensor,
        c: Tensor,
        of_output: Tensor,
        of_last_cell: Tensor,
        of_cell: Tensor,
        peephole: Tensor,
        order: StepOrder,
    ) -> Tensor:
        """Returns [N, d], in the order of steps as everything here.

        Args:
            ctx: what backward needs.
            sums: [N, 4 d + 2].
            y, c: [R, d] the state before the first step.
            of_output, of_last_cell, of_cell, peephole: [4 d + 2, d], [2 d + 2, d], [d + 1, d], [d].
            order: the steps.
        """
        d = y.size(1)
        initial = (y, c)
        cells, outputs = sums.new_empty(len(sums), d), sums.new_empty(len(sums), d)
        values = sums.clone()  # becomes, in place, what the sums are passed through
        for step in step_slices(order):
            size = step.stop - step.start
            y, c, value = y[:size], c[:size], values[step]
            value.addmm_(y, of_output.t())
            value[:, 2 * d :].addmm_(c, of_last_cell.t())
            value[:, d : 2 * d].addcmul_(c, peephole)
            value[:, : 2 * d].tanh_()
            value[:, -1:].sigmoid_()
            c = torch.lerp(value[:, :d], value[:, d : 2 * d], value[:, -1:], out=cells[step])
            value[:, 3 * d : -1].addmm_(c, of_cell.t())
            value[:, 2 * d : -2].tanh_()
            value[:, -2:-1].sigmoid_()
            y = torch.lerp(value[:, 2 * d : 3 * d], value[:, 3 * d : -2], value[:, -2:-1], out=outputs[step])
        ctx.order = order
        ctx.save_for_backward(values, cells, outputs, *initial, of_output, of_last_cell, of_cell, peephole)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: object, of_outputs: Tensor) -> Tuple:
        """Returns the gradients of what :meth:`forward` takes."""
        values, cells, outputs, y0, c0, of_output, of_last_cell, of_cell, peephole = ctx.saved_tensors
        before, d = ctx.order.before, y0.size(1)
        last_cells, last_outputs = (torch.cat([x0, x.index_select(0, before)]) for x0, x in ((c0, cells), (y0, outputs)))
        grads = torch.empty_like(values)  # of the sums
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

            dc = grad[:, 3 * d : -1] @ of_cell
            dc[:later] += dc_later
            torch.mul(dc, f, out=d_cells[:, d:])
            torch.sub(dc, d_cells[:, d:], out=d_cells[:, :d])
            difference = torch.sub(of_cells[:, d:], of_cells[:, :d], out=difference)
            torch.sum(difference.mul_(dc), 1, keepdim=True, out=d_gates[:, 1:])
            d_gates[:, 1:].mul_(f).mul_(1 - f)
            tanh_backward.grad_input(d_cells, of_cells, grad_input=d_cells)

            dc_later = (grad[:, 2 * d :] @ of_last_cell).addcmul_(d_cells[:, d:], peephole)
            dy_later = grad @ of_output
        d_peephole = (grads[:, d : 2 * d] * last_cells).sum(0)
        d_weights = (grads.t() @ last_outputs, grads[:, 2 * d :].t() @ last_cells, grads[:, 3 * d : -1].t() @ cells)
        return grads, dy_later, dc_later, *d_weights, d_peephole, None
