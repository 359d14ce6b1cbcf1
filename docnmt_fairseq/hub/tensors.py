"""Tensors of model files, read without executing code: safetensors, or PyTorch's safe loader."""

from pathlib import Path
from typing import Dict, List, Sequence

import torch
from torch import Tensor
from tqdm import tqdm

from docnmt_fairseq.errors import InputError, first_line, needs_extra
from docnmt_fairseq.hub.base import read_json

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # lists the files of a model in several files


class Tensors:
    """Tensors of a folder in the format of the hub.

    Every tensor must be taken or left out explicitly, so that no part of a model is lost.

    Args:
        folder: folder of the model.

    Raises:
        InputError: it has no tensors, or a file is damaged or unsafe.
    """

    def __init__(self, folder: Path):
        names = (SAFETENSORS, f"{SAFETENSORS}{INDEX}", PICKLE, f"{PICKLE}{INDEX}")
        found = [folder / name for name in names if (folder / name).is_file()]
        if not found:
            raise InputError(f"{folder}: {SAFETENSORS} and {PICKLE} are missing; other formats are not supported")
        self.path = found[0]
        self.files = _indexed_files(self.path) if self.path.name.endswith(INDEX) else [self.path]
        self._remaining: Dict[str, Tensor] = {}
        for file in self.files:
            self._remaining.update(_read_safetensors(file) if file.suffix == ".safetensors" else _read_pickle(file))
        self._progress = tqdm(total=len(self._remaining), desc="import", unit=" tensors", disable=None)

    def __contains__(self, name: str) -> bool:
        return name in self._remaining

    def take(self, name: str, shape: Sequence[int]) -> Tensor:
        """Returns a tensor.

        Raises:
            InputError: it is missing, has another shape, or is not a finite weight.
        """
        if name not in self:
            raise InputError(f"{self.path}: {name} is missing: another architecture, or an incomplete file")
        tensor = self._remaining.pop(name)
        self._progress.update()
        check_weight(self.path, name, tensor)
        if list(tensor.shape) != list(shape):
            raise InputError(f"{self.path}: {name} is {list(tensor.shape)}, but {list(shape)} in the configuration")
        return tensor

    def leave_out(self, *names: str) -> None:
        """Drops tensors that are copies of others, or computed."""
        for name in names:
            self._progress.update(self._remaining.pop(name, None) is not None)

    def check_all_taken(self) -> None:
        """Raises :class:`InputError` if a tensor has not been taken."""
        self._progress.close()
        if self._remaining:
            first = ", ".join(sorted(self._remaining)[:3])
            raise InputError(f"{self.path}: {len(self._remaining)} tensors of another architecture: {first}, …")


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
    names = sorted({*read_json(index)["weight_map"].values()})
    missing = [name for name in names if Path(name).name != name or not (index.parent / name).is_file()]
    if missing:
        raise InputError(f"{index}: {missing[0]} is missing; download the whole model")
    return [index.parent / name for name in names]


def _read_safetensors(file: Path) -> Dict[str, Tensor]:
    with needs_extra("pretrained", file):
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: truncated or damaged ({first_line(error)}); download it again") from error


def _read_pickle(file: Path) -> Dict[str, Tensor]:
    try:
        return dict(torch.load(file, map_location="cpu", weights_only=True))
    except Exception as error:  # any content
        raise InputError(f"{file}: damaged, or not loaded since it may execute code: {first_line(error)}") from None
