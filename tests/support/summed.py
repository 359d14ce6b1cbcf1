"""Types of the operations that code runs: sums in half types, and results less precise than float64."""

import traceback
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

HALF = (torch.bfloat16, torch.float16)
# Operations that sum many numbers or exponentiate.
SUMMING = {
    "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data", "logsumexp", "logaddexp",
    "exp", "cumsum", "norm", "linalg_vector_norm", "std", "var", "sum", "mean", "dot", "mv", "addmv",
    "embedding_dense_backward", "_embedding_bag", "native_layer_norm", "native_layer_norm_backward", "scatter_reduce",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip
INTO = {"index_add", "index_put", "_index_put_impl", "scatter_add"}  # add to their first argument


class Summed(TorchDispatchMode):
    """Collects the sums in half types, as (operation, file or "backward")."""

    def __init__(self):
        super().__init__()
        self.found, self.backward = set(), False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__.rstrip("_")
        if name in SUMMING:
            half = any(x.dtype in HALF for x in tree_leaves(args) if isinstance(x, torch.Tensor))
        else:
            half = name in INTO and args[0].dtype in HALF
            if half and name == "index_add":  # what comes to each place once is no sum
                half = len(args[2].unique()) < len(args[2])
        if half:
            self.found.add((name, "backward" if self.backward else self.caller()))
        return function(*args, **(kwargs or {}))

    @staticmethod
    def caller():
        """Returns the name of the innermost file of ours, of fairseq or of PyTorch's modules."""
        files = (Path(frame.f_code.co_filename) for frame, _ in traceback.walk_stack(None))
        names = (file.name for file in files if {"docnmt_fairseq", "fairseq", "nn"} & set(file.parts[:-1]))
        return next(names, "elsewhere")


class Narrowed(TorchDispatchMode):
    """Collects the names of operations with a floating-point result of another type than float64."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        results = (x for x in tree_leaves(out) if isinstance(x, torch.Tensor) and x.is_floating_point())
        if any(x.dtype != torch.float64 for x in results):
            self.found.add(function.overloadpacket.__name__)
        return out
