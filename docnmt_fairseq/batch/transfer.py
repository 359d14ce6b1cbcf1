"""Transfer of a whole structure of tensors to another device in one copy.

A structure consists of dataclasses, lists, tuples, dictionaries and tensors; any other value is kept as it is, and
shared parts stay shared.
"""

from dataclasses import fields, is_dataclass
from typing import Any, Callable, Dict, List, Optional, Set, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
ALIGNMENT = 16  # bytes; GPU kernels are compiled for addresses that are multiples of it, and recompiled for others


def gathered(structure: T) -> T:
    """Returns the same structure with all its tensors as views of one buffer.

    A data loader's worker then hands over one piece of memory, which :func:`to_device` and :func:`pinned` copy whole.
    """
    return _with_tensors(structure, _packed)


def pinned(structure: T) -> T:
    """Returns the same structure in page-locked memory, from which a GPU copies asynchronously."""
    return _with_tensors(structure, lambda tensors: _copied(tensors, Tensor.pin_memory))


def to_device(structure: T, device: torch.device) -> T:
    """Returns the same structure with all its tensors on ``device``, moved in one asynchronous copy."""
    return _with_tensors(structure, lambda tensors: _moved(tensors, device))


def _with_tensors(structure: T, replace: Callable[[List[Tensor]], List[Tensor]]) -> T:
    """Returns the structure with every tensor replaced."""
    tensors: Dict[int, Tensor] = {}
    _collect(structure, tensors, set())
    return _rebuilt(structure, dict(zip(tensors, replace(list(tensors.values())))), {})


def _moved(tensors: List[Tensor], device: torch.device) -> List[Tensor]:
    if device.type == "cuda" and tensors and not tensors[0].is_pinned():
        tensors = _copied(tensors, Tensor.pin_memory)
    return _copied(tensors, lambda buffer: buffer.to(device, non_blocking=True))


def _copied(tensors: List[Tensor], copy: Callable[[Tensor], Tensor]) -> List[Tensor]:
    """Returns copies of tensors, made by one copy of their common buffer; creates the buffer if there is none."""
    buffer = _buffer_of(tensors)
    if buffer is None:
        tensors = _packed(tensors)
        buffer = _buffer_of(tensors)
    if buffer is None:
        return tensors
    copied = copy(buffer)
    return [_view(copied, int(tensor.storage_offset()) * tensor.element_size(), tensor) for tensor in tensors]


def _packed(tensors: List[Tensor]) -> List[Tensor]:
    """Returns copies of tensors as views of one buffer, each at a multiple of ``ALIGNMENT`` bytes."""
    if not tensors:
        return []
    filling = torch.zeros(ALIGNMENT, dtype=torch.uint8, device=tensors[0].device)
    pieces, starts, end = [], [], 0
    for tensor in tensors:
        # as_strided: a dimension of one element may have any stride, which view(uint8) refuses
        piece = tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)
        missing = -len(piece) % ALIGNMENT
        pieces += [piece, filling[:missing]]
        starts.append(end)
        end += len(piece) + missing
    buffer = torch.cat(pieces)
    return [_view(buffer, start, tensor) for start, tensor in zip(starts, tensors)]


def _buffer_of(tensors: List[Tensor]) -> Optional[Tensor]:
    """Returns the buffer [bytes] that holds all (contiguous) tensors; None if there are several."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    if len(storages) != 1 or not all(tensor.is_contiguous() for tensor in tensors):
        return None
    storage = tensors[0].untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _view(buffer: Tensor, start: int, like: Tensor) -> Tensor:
    """Returns the bytes of a buffer from ``start`` on as a tensor of the type and shape of ``like``."""
    return buffer[start : start + like.numel() * like.element_size()].view(like.dtype).view(like.shape)


def _parts(value: Any) -> Any:
    """Returns the parts of a value by name or number; None if it is not a structure."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    return None


def _collect(value: Any, tensors: Dict[int, Tensor], seen: Set[int]) -> None:
    if isinstance(value, Tensor):
        tensors[id(value)] = value
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    for part in (_parts(value) or {}).values():
        _collect(part, tensors, seen)


def _rebuilt(value: Any, moved: Dict[int, Tensor], rebuilt: Dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        return moved[id(value)]
    if id(value) in rebuilt:
        return rebuilt[id(value)]
    parts = _parts(value)
    if parts is None:
        return value
    new = {name: _rebuilt(part, moved, rebuilt) for name, part in parts.items()}
    if isinstance(value, dict):
        result: Any = new
    elif isinstance(value, (list, tuple)):
        result = type(value)(new.values()) if type(value) in (list, tuple) else type(value)(*new.values())
    else:  # a dataclass, perhaps frozen or with its own constructor
        result = object.__new__(type(value))
        for name, part in new.items():
            object.__setattr__(result, name, part)
    rebuilt[id(value)] = result
    return result
