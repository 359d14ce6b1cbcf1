"""Device that computes on the CPU and counts operations, copies and reads, as a GPU would execute them.

    with counted_device() as device, counted() as count:
        model.to(device)(x.to(device)).sum().backward()
    count.kinds, count.copies, count.reads

Tensors on it are of another device type than the CPU's: code takes the paths that it takes on a GPU, and whatever mixes
devices fails as it does there. Needs PyTorch's support for devices written in Python (2.10 and later).

What a GPU computes in one kernel is one operation: scaled dot-product attention, attention to packed rows
(``aten::_flash_attention_forward``). Views and empty tensors are none.
"""

import contextlib
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode

from tests.support.fused_attention import ATTENTION
from tests.support.fused_cells import CELLS

NAME = "counted"
FUSED = {**ATTENTION, **CELLS}
HAVE = hasattr(backend_registration, "_setup_privateuseone_for_python_backend")
aten = torch.ops.aten
ALWAYS_READ = {  # the size of the result, or the result itself, is known to the device only
    "_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "equal",
    "bincount",
}  # fmt: skip
NO_WORK = {"_unsafe_view", "_reshape_alias", "lift_fresh", "empty", "empty_like", "empty_strided", "new_empty"}
NO_WORK |= {"new_empty_strided", "_has_compatible_shallow_copy_type"}


class HostRead(RuntimeError):
    """The CPU waits for the device."""


@dataclass
class Count:
    """Counts of a device.

    Attributes:
        kinds: how often each operation.
        copies: where tensors of the CPU were copied to the device, each waited for or not.
        reads: where the CPU waited for what the device computes, by operation.
        raising: whether such a read is an error.
    """

    kinds: "Counter[str]" = field(default_factory=Counter)
    copies: List[Tuple[str, str]] = field(default_factory=list)
    reads: List[Tuple[str, str]] = field(default_factory=list)
    raising: bool = False

    def read(self, name: str) -> None:
        """Counts a read, or raises."""
        where = _where()
        if self.raising:
            raise HostRead(f"{name} reads the device at {where}")
        self.reads.append((name, where))


_counts: List[Count] = []


class CountedTensor(torch.Tensor):
    """Tensor on the device; ``inner`` has its values."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> "CountedTensor":
        """Returns a tensor on the device."""
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(function, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """Intercepts factory functions and copies to the device."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        made_there = device is not None and torch.device(device).type == NAME
        if made_there or any(isinstance(given, CountedTensor) for given in _tensors(args, kwargs)):
            return _computed(function, args, kwargs)
        return function(*args, **kwargs)


of_padded_rows = F.scaled_dot_product_attention


def _fused(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, **others: Any,
) -> Tensor:  # fmt: skip
    """Scaled dot-product attention by the fused kernel, which PyTorch does not offer to devices written in Python."""
    if not isinstance(query, CountedTensor):
        return of_padded_rows(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **others)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(~attn_mask, -torch.inf)
    compute = aten._scaled_dot_product_fused_attention_overrideable
    return compute(query, key, value, attn_mask, dropout_p, is_causal, False, scale=scale)[0]


class _Module(backend_registration._DummyBackendModule):
    """Module of the device type for PyTorch; the type stays registered, the device is available inside a block."""

    present = False

    def is_available(self) -> bool:
        """Returns whether the device is available."""
        return self.present

    def get_amp_supported_dtype(self) -> List[torch.dtype]:
        """Returns the types of autocast."""
        return [torch.bfloat16, torch.float16]


@contextlib.contextmanager
def counted_device() -> Iterator[torch.device]:
    """Provides the device inside the block."""
    if torch._C._get_privateuse1_backend_name() != NAME:
        backend_registration._setup_privateuseone_for_python_backend(NAME, _Module())
    F.scaled_dot_product_attention, _Module.present = _fused, True
    try:
        # Autograd has threads for the devices that there were at its first backward pass in a process.
        with _Factories(), torch.autograd.set_multithreading_enabled(False):
            yield torch.device(NAME, 0)
    finally:
        F.scaled_dot_product_attention, _Module.present = of_padded_rows, False


@contextlib.contextmanager
def counted(raising: bool = False) -> Iterator[Count]:
    """Counts inside the block; ``raising``: a read of the device raises :class:`HostRead`."""
    count = Count(raising=raising)
    _counts.append(count)
    try:
        yield count
    finally:
        _counts.remove(count)


def _computed(function: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
    """Returns the result of an operation with tensors on the device."""
    name = function._schema.name.split("::")[1]
    onto_cpu = _moves_to_cpu(name, args, kwargs)
    from_cpu = _copies_from_cpu(name, args)
    foreign = (given for given in _tensors(args, kwargs) if not isinstance(given, CountedTensor) and given.dim())
    if not onto_cpu and not from_cpu and any(True for _ in foreign):
        raise RuntimeError(f"{name}: tensors of the CPU among those of the device, at {_where()}")
    for count in _counts:
        if onto_cpu or name.rstrip("_") in ALWAYS_READ or _reads(name, args, kwargs):
            count.read(name)
        if from_cpu:
            count.copies.append((name, _where()))
        if asks_for_work(function):
            count.kinds[name] += 1
    inner = {key: _inner(given) for key, given in kwargs.items()}
    out = FUSED.get(name, function)(*map(_inner, args), **inner)
    if onto_cpu:
        return out
    if function._schema.name.endswith("_") and isinstance(args[0], CountedTensor):
        return args[0]  # in-place operations return their argument
    return _outer(out)


def _tensors(args: Any, kwargs: Dict[str, Any]) -> Iterator[Tensor]:
    """Yields the tensors among arguments."""
    for given in (*args, *kwargs.values()):
        if isinstance(given, Tensor):
            yield given
        elif isinstance(given, (list, tuple)):
            yield from (one for one in given if isinstance(one, Tensor))


def _outer(out: Any) -> Any:
    """Returns a result as tensors on the device."""
    if isinstance(out, Tensor):
        return CountedTensor(out)
    return type(out)(map(_outer, out)) if isinstance(out, (list, tuple)) else out


def _inner(given: Any) -> Any:
    """Returns an argument for the CPU."""
    if isinstance(given, CountedTensor):
        return given.inner
    if isinstance(given, torch.device):
        return torch.device("cpu") if given.type == NAME else given
    return type(given)(map(_inner, given)) if type(given) in (list, tuple) else given


def _moves_to_cpu(name: str, args: Any, kwargs: Dict[str, Any]) -> bool:
    if name == "copy_":
        return not isinstance(args[0], CountedTensor)
    device = kwargs.get("device")
    return name == "_to_copy" and device is not None and torch.device(device).type == "cpu"


def _copies_from_cpu(name: str, args: Any) -> bool:
    source = args[1] if name == "copy_" else args[0] if name == "_to_copy" else None
    return isinstance(source, Tensor) and not isinstance(source, CountedTensor)


def _reads(name: str, args: Any, kwargs: Dict[str, Any]) -> bool:
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return any(isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8) for x in args[1])
    return False


def asks_for_work(function: Any) -> bool:
    """Returns whether an operation launches work; views and empty tensors do not."""
    views = (value.alias_info is not None and not value.alias_info.is_write for value in function._schema.returns)
    return function._schema.name.split("::")[1] not in NO_WORK and not any(views)


HERE = str(Path(__file__).parent)


def _where() -> str:
    """Returns the innermost line outside of PyTorch and this file."""
    for frame in reversed(traceback.extract_stack()):
        if "/torch/" not in frame.filename and not frame.filename.startswith(HERE):
            return f"{Path(frame.filename).parent.name}/{Path(frame.filename).name}:{frame.lineno} {frame.line}"
    return "the backward pass"
