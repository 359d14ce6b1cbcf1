"""Tensors of model files, read without executing code: safetensors, or PyTorch's safe loader."""

from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, Sequence

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
        InputError: a file is missing, damaged or unsafe.
    """

    def __init__(self, folder: Path):
        names = (SAFETENSORS, f"{SAFETENSORS}{INDEX}", PICKLE, f"{PICKLE}{INDEX}")
        self.path = next((folder / name for name in names if (folder / name).is_file()), folder / SAFETENSORS)
        self.files = _indexed_files(self.path) if self.path.name.endswith(INDEX) else [self.path]
        self._remaining: Dict[str, Tensor] = {}
        for file in self.files:
            self._remaining.update(_read(file))
        self._progress = tqdm(total=len(self._remaining), desc="import", unit=" tensors", disable=None)

    def __contains__(self, name: str) -> bool:
        return name in self._remaining

    def take(self, name: str, shape: Sequence[int]) -> Tensor:
        """Returns a tensor.

        Raises:
            InputError: it is missing, has another shape, or is quantised.
        """
        tensor = self._remaining.pop(name, None)
        if tensor is None or list(tensor.shape) != list(shape):
            found = "missing" if tensor is None else list(tensor.shape)
            raise InputError(f"{self.path}: {name} is {found}, but {list(shape)} in the configuration")
        self._progress.update()
        check_weight(self.path, name, tensor)
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


def check_weight(path: Path, name: str, tensor: Tensor) -> None:
    """Raises :class:`InputError` for a quantised tensor."""
    if not tensor.is_floating_point():
        kind = str(tensor.dtype).removeprefix("torch.")
        raise InputError(f"{path}: {name} has type {kind}; quantised models are not supported, give the original")


def _indexed_files(index: Path) -> List[Path]:
    return [index.parent / name for name in sorted({*read_json(index)["weight_map"].values()})]


def _read(file: Path) -> Dict[str, Tensor]:
    load: Callable[[Path], Dict[str, Tensor]] = partial(torch.load, map_location="cpu", weights_only=True)
    if file.suffix == ".safetensors":
        with needs_extra("pretrained", file):
            from safetensors.torch import load_file
        load = load_file
    try:
        return dict(load(file))
    except Exception as error:  # any content
        reason = "missing, damaged, or not loaded since it may execute code"
        raise InputError(f"{file}: {reason}: {first_line(error)}; download the whole model") from None
