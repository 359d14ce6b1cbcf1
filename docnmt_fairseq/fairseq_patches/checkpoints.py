"""Checkpoints: safe loading, atomic writing, and float32 weights of half-precision training."""

import argparse
import ast
import collections
import logging
import operator
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Type

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import atomic_path, copy_file

OPERATIONS: Dict[Type[ast.operator], Callable[[Any, Any], Any]] = {ast.Add: operator.add, ast.Mult: operator.mul}
MASTER_WEIGHTS = "full_precision_weights"  # key in the optimizer state of a checkpoint
WRITE_ATTEMPTS, WRITE_PAUSE = 3, 2.5  # seconds; network file systems fail temporarily

logger = logging.getLogger(__name__)


def allow_fairseq_checkpoints() -> None:
    """Allows the classes in fairseq's checkpoints in PyTorch's safe loader; none of them can execute code."""
    from fairseq.distributed.utils import _TensorPlaceholder
    from fairseq.logging.meters import AverageMeter, StopwatchMeter, TimeMeter
    from numpy._core import multiarray
    from omegaconf import DictConfig, ListConfig
    from omegaconf.base import ContainerMetadata, Metadata
    from omegaconf.nodes import AnyNode

    allowed: List[Any] = [argparse.Namespace]  # options of models without a dataclass
    allowed += [np.ndarray, np.dtype]  # counts of --eval-bleu in the meters
    for module in ("numpy._core.multiarray", "numpy.core.multiarray"):
        allowed += [(multiarray._reconstruct, f"{module}._reconstruct"), (multiarray.scalar, f"{module}.scalar")]
    allowed += sorted({type(np.dtype(code)) for code in "?bhilqBHILQefd"}, key=lambda cls: cls.__name__)
    for meter in (AverageMeter, StopwatchMeter, TimeMeter):  # until fairseq 0.8
        allowed += [(meter, f"{module}.{meter.__name__}") for module in ("fairseq.meters", "fairseq.logging.meters")]
    # objects that processes send each other when they resume
    allowed += [_TensorPlaceholder, DictConfig, ListConfig, ContainerMetadata, Metadata, AnyNode]
    torch.serialization.add_safe_globals([*allowed, Any, collections.defaultdict, dict, list, int])


def evaluate(expression: Any) -> Any:
    """Value of an expression of literals, ``+`` and ``*`` such as ``[(512, 3)] * 20``; replaces ``eval``.

    Raises:
        InputError: any other expression.
        TypeError: not a string; fairseq relies on this error of ``eval``.
    """
    text = str.strip(expression)
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"option {text[:60]!r}: not a literal value; refused, it could execute code") from None


def _value(node: ast.expr) -> Any:
    if isinstance(node, (ast.List, ast.Tuple)):
        return (list if isinstance(node, ast.List) else tuple)(_value(entry) for entry in node.elts)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    return ast.literal_eval(node)


def replace_eval() -> None:
    """Replaces ``eval`` by :func:`evaluate` in all modules of fairseq."""
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq."):
            vars(module)["eval"] = evaluate


def save_atomically(save: Callable[..., None]) -> Callable[..., None]:
    """Saves checkpoints under a temporary name first; each attempt writes a new file."""
    from fairseq.file_io import PathManager

    def torch_persistent_save(obj: Any, filename: str, async_write: bool = False) -> None:
        if async_write or not PathManager.supports_rename(filename):
            save(obj, filename, async_write)
            return
        for attempt in range(1, WRITE_ATTEMPTS + 1):
            try:
                with atomic_path(filename) as partial:
                    torch.save(obj, partial)
                return
            except (InputError, RuntimeError) as error:  # the latter hides the system's reason
                if attempt == WRITE_ATTEMPTS:
                    raise InputError(f"{filename}: cannot be written: {first_line(error)}") from error
                logger.warning(f"{filename}: cannot be written ({first_line(error)}); retrying in {WRITE_PAUSE} s")
                time.sleep(WRITE_PAUSE)

    return torch_persistent_save


def copy_atomically(copy: Callable[..., Any]) -> Callable[..., Any]:
    """Copies checkpoints under a temporary name first."""
    from fairseq.file_io import PathManager

    def copy_checkpoint(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if not PathManager.supports_rename(dst_path):
            return copy(src_path, dst_path, overwrite)
        copy_file(src_path, dst_path)
        return True

    return copy_checkpoint


def save_master_weights(state_dict: Callable[[Any], Dict[str, Any]]) -> Callable[[Any], Dict[str, Any]]:
    """Adds the float32 weights to the optimizer state."""

    def wrapper(self: Any) -> Dict[str, Any]:
        return {**state_dict(self), MASTER_WEIGHTS: [weights.detach() for weights in master_weights(self)]}

    return wrapper


def load_master_weights(load_state_dict: Callable[..., None]) -> Callable[..., None]:
    """Restores the float32 weights; without them, the half-precision weights of the checkpoint are used."""

    def wrapper(self: Any, state_dict: Dict[str, Any], optimizer_overrides: Optional[Dict[str, Any]] = None) -> None:
        state_dict = dict(state_dict)
        saved, own = state_dict.pop(MASTER_WEIGHTS, []), master_weights(self)
        load_state_dict(self, state_dict, optimizer_overrides)
        if [weights.shape for weights in saved] == [weights.shape for weights in own]:
            with torch.no_grad():
                for weights, other in zip(own, saved):
                    weights.copy_(other)

    return wrapper


def master_weights(optimizer: Any) -> List[Tensor]:
    """Float32 weights of an optimizer: one tensor per parameter, or one per device with all of them."""
    weights = optimizer.fp32_params
    return list(weights.values() if isinstance(weights, dict) else weights)
