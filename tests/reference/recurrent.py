"""Recurrent cells row by row and step by step, vector by vector, from the equations."""

from typing import Callable, Iterator, List, Sequence, Tuple

import torch
from torch import Tensor

State = Tuple[Tensor, ...]


def states(step: Callable, module, row: Sequence[Tensor], state: State) -> Iterator[State]:
    """s_1, s_2, … of one row."""
    for x in row:
        state = step(module, x, state)
        yield state


def gru(rnn, x: Tensor, state: State) -> State:
    """h_k = (1 − z) n + z h_{k−1}, z, r = σ(W x + U h), n = tanh(W x + r (U h))."""
    (h,) = state
    of_x = (rnn.weight_ih_l0 @ x + rnn.bias_ih_l0).chunk(3)
    of_h = (rnn.weight_hh_l0 @ h + rnn.bias_hh_l0).chunk(3)
    r, z = (torch.sigmoid(of_x[i] + of_h[i]) for i in (0, 1))
    return ((1 - z) * torch.tanh(of_x[2] + r * of_h[2]) + z * h,)


def gru_reset_before(rnn, x: Tensor, state: State) -> State:
    """h_k = (1 − z) n + z h_{k−1}, z, r = σ(W x + U h), n = tanh(W x + U (r ⊙ h)) ([Z] Table 1)."""
    (h,) = state
    (W_r, W_z, W), (U_r, U_z, U) = rnn.weight_ih_l0.chunk(3), rnn.weight_hh_l0.chunk(3)
    (b_r, b_z, b), (c_r, c_z, c) = rnn.bias_ih_l0.chunk(3), rnn.bias_hh_l0.chunk(3)
    r = torch.sigmoid(W_r @ x + b_r + U_r @ h + c_r)
    z = torch.sigmoid(W_z @ x + b_z + U_z @ h + c_z)
    return ((1 - z) * torch.tanh(W @ x + b + U @ (r * h) + c) + z * h,)


def lstm(rnn, x: Tensor, state: State) -> State:
    """c_k = f c_{k−1} + i g, h_k = o tanh(c_k)."""
    h, c = state
    sums = rnn.weight_ih_l0 @ x + rnn.bias_ih_l0 + rnn.weight_hh_l0 @ h + rnn.bias_hh_l0
    i, f, g, o = sums.chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def ca_rnn(cell, x: Tensor, state: State) -> State:
    """[Z] eq. 34 and 36, with the names of the text; a state is (y, c)."""
    (y_before, c_before), d = state, len(state[0])
    W_c, W_v, W_co, W_vo, (w_o,), (w_f,) = cell.of_input.weight.split([d, d, d, d, 1, 1])
    b_c, b_v, b_co, b_vo, (b_o,), (b_f,) = cell.of_input.bias.split([d, d, d, d, 1, 1])
    U_c, U_v, U_co, U_vo, (u_o,), (u_f,) = cell.of_output.split([d, d, d, d, 1, 1])
    V_co, V_v, (v_o,), (v_f,) = cell.of_last_cell.split([d, d, 1, 1])
    Z_v, (z_o,) = cell.of_cell.split([d, 1])
    p_v = cell.peephole

    f = torch.sigmoid(v_f @ c_before + w_f @ x + u_f @ y_before + b_f)
    v = torch.tanh(W_v @ x + U_v @ y_before + p_v * c_before + b_v)
    c_prime = torch.tanh(W_c @ x + U_c @ y_before + b_c)
    c = f * v + (1 - f) * c_prime

    o = torch.sigmoid(z_o @ c + v_o @ c_before + w_o @ x + u_o @ y_before + b_o)
    v_output = torch.tanh(Z_v @ c + V_v @ c_before + W_vo @ x + U_vo @ y_before + b_vo)
    c_output = torch.tanh(V_co @ c_before + W_co @ x + U_co @ y_before + b_co)
    return o * v_output + (1 - o) * c_output, c


def step_of(cell) -> Tuple[Callable, object]:
    """Returns the step above of a cell, and the module that holds its parameters."""
    name = type(cell).__name__
    steps = {"GRU": gru, "GRUResetBefore": gru_reset_before, "LSTM": lstm}
    return (ca_rnn, cell) if name == "ContextAwareRNN" else (steps[name], cell.rnn)


def sequence(cell, x: Tensor, lengths: Sequence[int], initial: State, reverse: bool = False) -> Tensor:
    """The outputs of every row of packed x, each from its own initial state."""
    outputs: List[Tensor] = []
    step, module = step_of(cell)
    for number, row in enumerate(x.split(list(lengths))):
        tokens = [*reversed(row)] if reverse else [*row]
        of_row = [state[0] for state in states(step, module, tokens, tuple(part[number] for part in initial))]
        outputs += reversed(of_row) if reverse else of_row
    return torch.stack(outputs)


def bidirectional(layers, x: Tensor, lengths: Sequence[int]) -> Tensor:
    """h_j = [h→_j; h←_j], layer by layer, from zeros."""
    for cells in zip(layers.forwards, layers.backwards):
        outputs = []
        for cell, reverse in zip(cells, (False, True)):
            zeros = tuple(x.new_zeros(len(lengths), cell.state_dim) for _ in range(cell.parts))
            outputs.append(sequence(cell, x, lengths, zeros, reverse))
        x = torch.cat(outputs, dim=1)
    return x


def conditional_gru(cell, y: Tensor, state: State, attend: Callable) -> Tuple[State, Tensor]:
    """s'_i = GRU_1(y_{i−1}, s_{i−1}), c_i = ATT(s'_i), s_i = GRU_2(c_i, s'_i) (Firat and Cho 2016)."""
    between = gru(cell.before.rnn, y, state)
    context = attend(between[0])
    return gru(cell.cell.rnn, context, between), context


def attend_updated(cell, y: Tensor, state: State, attend: Callable) -> Tuple[State, Tensor]:
    """s_i = cell([y_i; c_{i−1}], s_{i−1}), c_i = ATT(s_i) ([L] eq. 1-3); c_i is kept for the next step."""
    *before, last_context = state
    step, module = step_of(cell.cell)
    after = step(module, torch.cat([y, last_context]), tuple(before))
    context = attend(after[cell.query])
    return (*after, context), context


def attend_first(cell, y: Tensor, state: State, attend: Callable) -> Tuple[State, Tensor]:
    """c_i = ATT(s_{i−1}), s_i = cell([y_{i−1}; c_i], s_{i−1}) (Bahdanau et al. 2015)."""
    context = attend(state[cell.query])
    step, module = step_of(cell.cell)
    return step(module, torch.cat([y, context]), state), context


def deep_output(module, s: Tensor, y: Tensor, c: Tensor) -> Tensor:
    """tanh(W_s s + W_y y + W_c c + b), or the larger one of each pair of sums, or the state alone."""
    if module.kind == "state":
        return s
    W_s, W_y, W_c = module.sums.weight.split([len(s), len(y), len(c)], dim=1)
    sums = W_s @ s + W_y @ y + W_c @ c + module.sums.bias
    if not module.maxout:
        return torch.tanh(sums)
    return torch.stack([torch.maximum(sums[2 * j], sums[2 * j + 1]) for j in range(len(sums) // 2)])


DECODER_STEPS = {
    "ConditionalGRU": conditional_gru,
    "AttendFirst": attend_first,
    "AttendUpdated": attend_updated,
}
