"""Tensors of model files, read without executing code: safetensors, or PyTorch's safe loader."""

from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence, Set

import torch
from torch import Tensor

from docnmt_fairseq import fairseq_patches
from docnmt_fairseq.errors import InputError, first_line

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # lists the files of a model in several files
MISSING_LIBRARY = "needs the package safetensors: pip install 'docnmt_fairseq[pretrained]'"


class Tensors:
    """Tensors by name. Every tensor must be taken or left out explicitly, so that no part of a model is lost.

    Args:
        files: files with the tensors.
        name: name in error messages.
    """

    def __init__(self, files: Sequence[Path], name: Path):
        self.files, self.name = list(files), name
        self._readers: Dict[str, Callable[[], Tensor]] = {}
        for file in files:
            self._readers.update(_safetensors(file) if file.suffix == ".safetensors" else _pickle(file))
        self.remaining: Set[str] = set(self._readers)

    @classmethod
    def of_folder(cls, folder: Path) -> "Tensors":
        """Returns the tensors of a folder in the format of the hub.

        Raises:
            InputError: there are none, or a file is damaged or unsafe.
        """
        for name in (SAFETENSORS, PICKLE):
            if (folder / name).is_file():
                return cls([folder / name], folder / name)
            if (folder / f"{name}{INDEX}").is_file():
                return cls(_indexed_files(folder / f"{name}{INDEX}"), folder / f"{name}{INDEX}")
        raise InputError(f"{folder}: {SAFETENSORS} and {PICKLE} are missing; other formats are not supported")

    def __contains__(self, name: str) -> bool:
        return name in self._readers

    def take(self, name: str, shape: Sequence[int]) -> Tensor:
        """Returns a tensor.

        Raises:
            InputError: it is missing, has another shape, or is not a finite weight.
        """
        if name not in self._readers:
            raise InputError(f"{self.name}: {name} is missing: another architecture, or an incomplete file")
        tensor = self._readers[name]()
        if list(tensor.shape) != list(shape):
            raise InputError(f"{self.name}: {name} is {list(tensor.shape)}, but {list(shape)} in the configuration")
        check_weight(self.name, name, tensor)
        self.remaining.discard(name)
        return tensor

    def leave_out(self, *names: str) -> None:
        """Marks tensors as copies of others, or as computed."""
        self.remaining -= {*names}

    def check_all_taken(self) -> None:
        """Raises :class:`InputError` if a tensor has not been taken."""
        if self.remaining:
            first = ", ".join(sorted(self.remaining)[:3])
            raise InputError(f"{self.name}: {len(self.remaining)} tensors of another architecture: {first}, …")


def check_weight(path: Path, name: str, tensor: object) -> None:
    """Raises :class:`InputError` for a value that is not a tensor of finite floating-point numbers."""
    if not isinstance(tensor, Tensor):
        raise InputError(f"{path}: {name} is not a tensor; the file is damaged")
    if not tensor.is_floating_point():
        kind = str(tensor.dtype).removeprefix("torch.")
        raise InputError(f"{path}: {name} has type {kind}; quantised models are not supported, give the original")
    if not tensor.isfinite().all():
        raise InputError(f"{path}: {name} has values that are not finite; the file is damaged")


def _indexed_files(index: Path) -> List[Path]:
    from docnmt_fairseq.hub.source import read_json

    files = read_json(index).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise InputError(f"{index}: not an index of model files")
    names = sorted({*files.values()})
    missing = [name for name in names if not (index.parent / name).is_file() or Path(name).name != name]
    if missing:
        raise InputError(f"{index}: {missing[0]} is missing; download the whole model")
    return [index.parent / name for name in names]


def _safetensors(file: Path) -> Dict[str, Callable[[], Tensor]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise InputError(f"{file}: {MISSING_LIBRARY}") from error
    try:
        stream: Any = safe_open(str(file), framework="pt")
        names = list(stream.keys())
        return {name: lambda name=name: stream.get_tensor(name) for name in names}  # type: ignore[misc]
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: truncated or damaged ({first_line(error)}); download it again") from error


def _pickle(file: Path) -> Dict[str, Callable[[], Tensor]]:
    loaded = load_safely(file)
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError(f"{file}: not a dictionary of tensors")
    return {name: lambda name=name: loaded[name] for name in loaded}  # type: ignore[misc]


def load_safely(file: Path) -> Any:
    """Returns the content of a file by PyTorch's safe loader, memory-mapped if possible.

    Raises:
        InputError: the file may execute code, or is damaged.
    """
    fairseq_patches.apply()  # registers what checkpoints of fairseq hold besides tensors
    reason = ""
    for mapped in (True, False):  # files of old versions cannot be mapped
        try:
            return torch.load(file, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:  # any content
            unsafe = "Weights only load failed" in str(error)
            reason = "it may execute code" if unsafe else f"it is damaged ({type(error).__name__}: {first_line(error)})"
            if unsafe:
                break
    raise InputError(f"{file}: not loaded, because {reason}") from None
