"""Where the time of a computation goes, by kind of operation, as torch.profiler counts it."""

import re
from collections import defaultdict
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator
from unittest.mock import patch

from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.lib.machine import clock
from docnmt_fairseq.native import call as native

KINDS = {  # the first that fits an operation's name
    "matrix products": r"aten::(addmm|mm|matmul|linear)$|mkldnn::_linear|quantized::linear",
    "attention cores": r"scaled_dot_product|aten::(bmm|baddbmm|_softmax|_softmax_backward_data|logsumexp)$|kernel_look",
    "loss, search over the vocabulary": r"log_s|nll_loss|topk|amax|aten::(ne|eq|masked_select|_unique2?)$",
    "gathering, padding, copying": r"index|gather|scatter|cat$|copy_|clone|new_zeros|zero_|fill|embedding|slice|select",
}
REST = "layer norm, dropout, sums, Adam and the rest"
OUTSIDE = "outside of operations: Python, NumPy"


class Recorded:
    """The library of compiled kernels, whose calls the profiler sees."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(native_library(), name)

        def recorded(*arguments: Any) -> None:
            with record_function(name):
                function(*arguments)

        return recorded


native_library = native.library


@contextmanager
def compiled_kernels_recorded() -> Iterator[None]:
    """The profiler sees compiled kernels by their names."""
    with patch.object(native, "library", Recorded):
        yield


def kinds(run: Callable[..., int], *args: object, outside: bool = False) -> Dict[str, float]:
    """Returns milliseconds a target token by kind of operation, of what ``run`` does; it returns its tokens.

    The profiler sees time on the wall: it gives the shares, :func:`clock` the whole.

    Args:
        run: the computation, with its arguments.
        outside: tell what is in no operation, the profiler's own work included; else the shares are of operations.
    """
    start = clock()
    with compiled_kernels_recorded(), profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        tokens = run(*args)
        milliseconds = 1000 * (clock() - start)
    total: Dict[str, float] = defaultdict(float)
    for event in profiler.key_averages():
        kind = next((kind for kind, pattern in KINDS.items() if re.search(pattern, event.key)), REST)
        total[kind] += event.self_cpu_time_total
    if outside:
        total[OUTSIDE] = max(0.0, 1000 * milliseconds - sum(total.values()))
    names = (*KINDS, REST, OUTSIDE) if outside else (*KINDS, REST)
    return {kind: total[kind] / sum(total.values()) * milliseconds / tokens for kind in names}
