"""The tensors of a whole structure side by side in one buffer, and moved to another device in one copy.

A structure is made of dataclasses, lists, tuples, dictionaries and tensors; everything else stays as it is, and what
stands in several places stays shared.
"""

from dataclasses import fields, is_dataclass
from typing import Any, Callable, Dict, List, Optional, Set, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
ALIGNMENT = 16  # bytes: programs for GPUs are compiled for addresses that are multiples of it, and anew for others


def gathered(structure: T) -> T:
    """The same structure with all its tensors in one buffer, as views of it.

    A data loader's workers hand over one piece of memory, and :func:`to_device` and :func:`pinned` copy it as it is.

    Args:
        structure: its tensors are on one device, and need no gradient.
    """
    return _with_tensors(structure, _laid_out)


def pinned(structure: T) -> T:
    """The same structure in page-locked memory, from which a GPU copies while the CPU goes on."""
    return _with_tensors(structure, lambda tensors: _copied(tensors, Tensor.pin_memory))


def to_device(structure: T, device: torch.device) -> T:
    """The same structure with all its tensors on ``device``, in one copy that nothing waits for.

    Args:
        structure: its tensors are on one device, and need no gradient.
        device: where to.
    """
    return _with_tensors(structure, lambda tensors: _moved(tensors, device))


def _with_tensors(structure: T, replace: Callable[[List[Tensor]], List[Tensor]]) -> T:
    """The structure with other tensors in the places of its own."""
    tensors: Dict[int, Tensor] = {}
    _collect(structure, tensors, set())
    return _rebuilt(structure, dict(zip(tensors, replace(list(tensors.values())))), {})


def _moved(tensors: List[Tensor], device: torch.device) -> List[Tensor]:
    if device.type == "cuda" and tensors and not tensors[0].is_pinned():
        tensors = _copied(tensors, Tensor.pin_memory)
    return _copied(tensors, lambda buffer: buffer.to(device, non_blocking=True))


def _copied(tensors: List[Tensor], copy: Callable[[Tensor], Tensor]) -> List[Tensor]:
    """Copies of tensors by one copy of the buffer that they are in, or are laid out in first."""
    buffer = _buffer_of(tensors)
    if buffer is None:
        tensors = _laid_out(tensors)
        buffer = _buffer_of(tensors)
    return tensors if buffer is None else _views(copy(buffer), tensors)


def _laid_out(tensors: List[Tensor]) -> List[Tensor]:
    """Copies of tensors, views of one buffer, each from a multiple of ``ALIGNMENT`` bytes on."""
    if not tensors:
        return []
    filling = torch.zeros(ALIGNMENT, dtype=torch.uint8, device=tensors[0].device)
    pieces, starts, end = [], [], 0
    for tensor in tensors:
        piece = _flat(tensor).view(torch.uint8)
        missing = -len(piece) % ALIGNMENT
        pieces += [piece, filling[:missing]]
        starts.append(end)
        end += len(piece) + missing
    typed = _Typed(torch.cat(pieces))
    return [typed.view(start, tensor) for start, tensor in zip(starts, tensors)]


def _flat(tensor: Tensor) -> Tensor:
    """[elements] side by side, which a dimension of one element need not be."""
    return tensor.contiguous().as_strided((tensor.numel(),), (1,))


def _buffer_of(tensors: List[Tensor]) -> Optional[Tensor]:
    """The buffer [bytes] that contiguous tensors are all in; None: they are in several."""
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    if len(storages) != 1 or not all(tensor.is_contiguous() for tensor in tensors):
        return None
    storage = tensors[0].untyped_storage()
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _views(buffer: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    """What stands in a buffer where ``tensors`` stand in theirs."""
    typed = _Typed(buffer)
    return [typed.view(int(tensor.storage_offset()) * tensor.element_size(), tensor) for tensor in tensors]


class _Typed:
    """A buffer of bytes seen as other types.

    Args:
        buffer: [bytes].
    """

    def __init__(self, buffer: Tensor):
        self.buffer = buffer
        self.by_type: Dict[torch.dtype, Tensor] = {}

    def view(self, start: int, like: Tensor) -> Tensor:
        """The bytes from ``start`` on as a tensor of the type and shape of ``like``."""
        if like.dtype not in self.by_type:
            whole = len(self.buffer) // like.element_size() * like.element_size()
            self.by_type[like.dtype] = self.buffer[:whole].view(like.dtype)
        first = start // like.element_size()
        return self.by_type[like.dtype][first : first + like.numel()].view(like.shape)


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
