"""The tensors of a whole structure moved to another device together: one copy instead of one a tensor."""

from dataclasses import fields, is_dataclass
from typing import Any, Dict, List, Set, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
ALIGNMENT = 16  # bytes: views of any type begin at a multiple of their size


def to_device(structure: T, device: torch.device) -> T:
    """The same structure with all its tensors on ``device``.

    Tensors are laid side by side into one buffer, which is copied once; what stands in several places stays shared. The
    structure is made of dataclasses, lists, tuples, dictionaries and tensors; everything else stays as it is.

    Args:
        structure: its tensors are on one device, and need no gradient.
        device: where to.
    """
    tensors: Dict[int, Tensor] = {}
    _collect(structure, tensors, set())
    moved = dict(zip(tensors, _move_together(list(tensors.values()), device)))
    return _rebuilt(structure, moved, {})


def _move_together(tensors: List[Tensor], device: torch.device) -> List[Tensor]:
    """Copies of tensors on a device, views of one buffer."""
    starts, size = [], 0
    for tensor in tensors:
        starts.append(size)
        size += -(-tensor.numel() * tensor.element_size() // ALIGNMENT) * ALIGNMENT
    buffer = torch.empty(size, dtype=torch.uint8, pin_memory=device.type == "cuda")
    for tensor, start in zip(tensors, starts):
        _view(buffer, start, tensor).copy_(tensor)
    buffer = buffer.to(device, non_blocking=True)
    return [_view(buffer, start, tensor) for tensor, start in zip(tensors, starts)]


def _view(buffer: Tensor, start: int, like: Tensor) -> Tensor:
    """The bytes from ``start`` on as a tensor of the type and shape of ``like``."""
    part = buffer[start : start + like.numel() * like.element_size()]
    return part.view(like.dtype).view(like.shape)


def _parts(value: Any) -> Any:
    """What a value is made of, by name or number; None: it is no structure."""
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


def _rebuilt(value: Any, moved: Dict[int, Tensor], made: Dict[int, Any]) -> Any:
    if isinstance(value, Tensor):
        return moved[id(value)]
    if id(value) in made:
        return made[id(value)]
    parts = _parts(value)
    if parts is None:
        return value
    new = {name: _rebuilt(part, moved, made) for name, part in parts.items()}
    if isinstance(value, dict):
        result: Any = new
    elif isinstance(value, (list, tuple)):
        result = type(value)(new.values()) if type(value) in (list, tuple) else type(value)(*new.values())
    else:  # a dataclass, perhaps frozen, whose constructor may take something else
        result = object.__new__(type(value))
        for name, part in new.items():
            object.__setattr__(result, name, part)
    made[id(value)] = result
    return result
