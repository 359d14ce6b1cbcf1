"""The contract of recurrent cells, and their registry."""

from typing import Optional, Tuple

from torch import Tensor, nn

from docnmt_fairseq.modules.recurrent.steps import StepOrder
from docnmt_fairseq.modules.registry import Registry

State = Tuple[Tensor, ...]  # of B rows, [B, d] each; the first is the cell's output


class RecurrentCell(nn.Module):
    """Contract: ``cls(input_dim, state_dim)``. The same parameters over whole rows and step by step.

    Class attributes:
        parts: how many vectors a state has.

    Attributes:
        state_dim: d.
    """

    parts = 1

    def __init__(self, input_dim: int, state_dim: int):
        super().__init__()
        self.input_dim, self.state_dim = input_dim, state_dim

    def initial(self, rows: int, like: Tensor) -> State:
        """Returns a state of zeros, [rows, d] each, of the kind and on the device of ``like``."""
        return tuple(like.new_zeros(rows, self.state_dim) for _ in range(self.parts))

    def step(self, x: Tensor, state: State) -> State:
        """Returns the next state of rows with inputs x [B, input_dim]."""
        raise NotImplementedError

    def sequence(self, x: Tensor, order: StepOrder, initial: Optional[State] = None) -> Tensor:
        """Returns the outputs [N, d] of all steps of the rows, item by item as in x.

        Args:
            x: packed inputs [N, input_dim].
            order: the rows, all of them.
            initial: the states before the first step, [rows, d] each, row by row; None: zeros.
        """
        if initial is None:
            initial = self.initial(len(order.rows), x)
        first = tuple(part.index_select(0, order.row_index) for part in initial)
        return self.run(x.index_select(0, order.items), first, order).index_select(0, order.places)

    def run(self, x: Tensor, initial: State, order: StepOrder) -> Tensor:
        """Returns :meth:`sequence`, inputs, states and outputs being in the order of steps."""
        raise NotImplementedError


RECURRENT_CELLS: Registry[RecurrentCell] = Registry("recurrent cell")
