"""How fast this processor multiplies matrices, of every precision that models compute in."""

import time

from docnmt_fairseq.layers.rounding import PRECISIONS

__all__ = ["PRECISIONS", "products_a_second"]
ROWS, INPUTS, OUTPUTS = 256, 512, 2048
LONG_ENOUGH = 0.05  # seconds


def products_a_second(precision: str) -> float:
    """Multiplications and additions a second, on one thread, in a linear map as search uses it; 0: there are none.

    Args:
        precision: one of ``PRECISIONS``.
    """
    import torch

    from docnmt_fairseq.layers.packed_linear import PackedLinear, available

    if not available(precision):
        return 0.0
    threads, linear = torch.get_num_threads(), PackedLinear(INPUTS, OUTPUTS)
    rows = torch.randn(ROWS, INPUTS)
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            linear.pack(precision)
            linear(rows)
            start, times = time.perf_counter(), 0
            while time.perf_counter() - start < LONG_ENOUGH:
                linear(rows)
                times += 1
            return 2 * ROWS * INPUTS * OUTPUTS * times / (time.perf_counter() - start)
    finally:
        torch.set_num_threads(threads)
