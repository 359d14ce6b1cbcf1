"""Fused kernels of recurrent cells by their equations on the CPU; see fused_attention."""

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor


def _with_bias(gates: Tensor, bias: Optional[Tensor], parts: int) -> Tuple[Tensor, ...]:
    return (gates if bias is None else gates + bias).chunk(parts, 1)


def gru(
    of_input: Tensor, of_state: Tensor, h: Tensor, input_bias: Optional[Tensor] = None, bias: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor]:
    """``_thnn_fused_gru_cell``: h' = n + z (h − n), and the tensors for its backward pass."""
    reset_in, z_in, n_in = _with_bias(of_input, input_bias, 3)
    reset_h, z_h, n_h = _with_bias(of_state, bias, 3)
    reset, z = (reset_in + reset_h).sigmoid(), (z_in + z_h).sigmoid()
    n = (n_in + reset * n_h).tanh()
    return n + z * (h - n), torch.cat([reset, z, n, h, n_h], 1)


def gru_backward(grad: Tensor, kept: Tensor, has_bias: bool) -> Tuple[Optional[Tensor], ...]:
    """Returns the gradients of the arguments of :func:`gru`."""
    reset, z, n, h, n_h = kept.chunk(5, 1)
    of_z = grad * (h - n) * z * (1 - z)
    of_n = grad * (1 - z) * (1 - n * n)
    of_reset = of_n * n_h * reset * (1 - reset)
    of_input, of_state = torch.cat([of_reset, of_z, of_n], 1), torch.cat([of_reset, of_z, of_n * reset], 1)
    biases: List[Optional[Tensor]] = [of_input.sum(0), of_state.sum(0)] if has_bias else [None, None]
    return (of_input, of_state, grad * z, *biases)


def lstm(
    of_input: Tensor, of_state: Tensor, c: Tensor, input_bias: Optional[Tensor] = None, bias: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    """``_thnn_fused_lstm_cell``: c' = f c + i g, h' = o tanh(c'), and the tensors for the backward pass."""
    sums = (a + b for a, b in zip(_with_bias(of_input, input_bias, 4), _with_bias(of_state, bias, 4)))
    i, f, g, o = (gate.tanh() if number == 2 else gate.sigmoid() for number, gate in enumerate(sums))
    new = f * c + i * g
    return o * new.tanh(), new, torch.cat([i, f, g, o], 1)


def lstm_backward(
    of_h: Optional[Tensor], of_c: Optional[Tensor], c: Tensor, new: Tensor, kept: Tensor, has_bias: bool
) -> Tuple[Optional[Tensor], ...]:
    """Returns the gradients of gates, c and one bias."""
    i, f, g, o = kept.chunk(4, 1)
    zero, tanh = torch.zeros_like(c), new.tanh()
    of_h, of_c = zero if of_h is None else of_h, zero if of_c is None else of_c
    of_new = of_c + of_h * o * (1 - tanh * tanh)
    parts = of_new * g * i * (1 - i), of_new * c * f * (1 - f), of_new * i * (1 - g * g), of_h * tanh * o * (1 - o)
    gates = torch.cat(parts, 1)
    return gates, of_new * f, gates.sum(0) if has_bias else None


CELLS: Dict[str, Callable[..., Any]] = {
    "_thnn_fused_gru_cell": gru,
    "_thnn_fused_gru_cell_backward": gru_backward,
    "_thnn_fused_lstm_cell": lstm,
    "_thnn_fused_lstm_cell_backward_impl": lstm_backward,
}
