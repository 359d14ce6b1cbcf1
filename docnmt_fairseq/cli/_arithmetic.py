"""How fast this processor multiplies matrices, of every precision that models compute in."""

import logging
import time

from docnmt_fairseq.layers.rounding import FLOAT32, PRECISIONS

__all__ = ["PRECISIONS", "products_a_second", "warn_if_slow"]
ROWS, INPUTS, OUTPUTS = 256, 512, 2048
LONG_ENOUGH = 0.05  # seconds
SLOW = 0.9  # of the speed in float32: less is no chance any more

logger = logging.getLogger(__name__)


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


def warn_if_slow(precision: str) -> None:
    """Says so where this processor multiplies faster in float32: not every one that knows bfloat16 is fast at it.

    Args:
        precision: one of ``PRECISIONS`` that a model computes in; measuring takes a tenth of a second.
    """
    if precision == FLOAT32:
        return
    speed, usual = products_a_second(precision), products_a_second(FLOAT32)
    if speed < SLOW * usual:
        logger.warning(
            f"--precision {precision}: slower than {FLOAT32} on this processor, {speed / 1e9:,.0f} against "
            f"{usual / 1e9:,.0f} billion products a second; docnmt doctor measures all"
        )
