"""The tensors of a released model, read without executing anything: safetensors, or PyTorch's safe loader."""

from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

import torch
from torch import Tensor

from docnmt_fairseq import fairseq_patches
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.pretrained.released import read_json

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"  # beside a model in several files: which of them holds what
MISSING_LIBRARY = "needs the package safetensors; run pip install 'docnmt_fairseq[pretrained]'"


class Tensors:
    """Tensors by name; each is to be taken, so that nothing of a model is lost unnoticed.

    Args:
        files: that hold them.
        name: of all of them together, for messages.
    """

    def __init__(self, files: Sequence[Path], name: Path):
        self.files, self.name = list(files), name
        self._read: Dict[str, Callable[[], Tensor]] = {}
        for file in files:
            self._read.update(_readers(file))
        self.left: Set[str] = set(self._read)

    @classmethod
    def of_folder(cls, folder: Path) -> "Tensors":
        """The tensors of a folder as the hub has it, safetensors before pickles.

        Raises:
            InputError: there are none, or a file is damaged or not safe.
        """
        for name in (SAFETENSORS, PICKLE):
            if (folder / name).is_file():
                return cls([folder / name], folder / name)
            if (folder / f"{name}{INDEX}").is_file():
                return cls(_parts(folder / f"{name}{INDEX}"), folder / f"{name}{INDEX}")
        raise InputError(f"{folder}: holds no {SAFETENSORS} and no {PICKLE}; other formats are not read")

    def __contains__(self, name: str) -> bool:
        return name in self._read

    def take(self, name: str, shape: Sequence[int]) -> Tensor:
        """A tensor of finite numbers.

        Raises:
            InputError: it is not there, of another shape, or holds what no weight is.
        """
        if name not in self._read:
            raise InputError(f"{self.name}: lacks {name}; the file is of another architecture, or incomplete")
        tensor = self._read[name]()
        if list(tensor.shape) != list(shape):
            raise InputError(
                f"{self.name}: {name} is {list(tensor.shape)}, by the configuration {list(shape)}: they do not belong "
                "together"
            )
        check_weight(self.name, name, tensor)
        self.left.discard(name)
        return tensor

    def leave(self, *names: str) -> None:
        """Some of the tensors, if they are there, are copies of others, or made anew."""
        self.left -= {*names}

    def check_all_taken(self) -> None:
        """Raises :class:`InputError` if the model has more than was taken."""
        if self.left:
            first = ", ".join(sorted(self.left)[:3])
            raise InputError(f"{self.name}: has {len(self.left)} tensors of another architecture: {first}, …")


def check_weight(path: Path, name: str, tensor: object) -> None:
    """Raises :class:`InputError` if what a file holds is no weight: no tensor, integers, or no finite numbers."""
    if not isinstance(tensor, Tensor):
        raise InputError(f"{path}: {name} is no tensor; the model is damaged")
    if not tensor.is_floating_point():
        kind = str(tensor.dtype).removeprefix("torch.")
        raise InputError(f"{path}: {name} is of type {kind}; quantised models are not read, give the original")
    if not tensor.isfinite().all():
        raise InputError(f"{path}: {name} has values that are no finite numbers; the model is damaged")


def _parts(index: Path) -> List[Path]:
    held = read_json(index).get("weight_map")
    if not isinstance(held, dict) or not all(isinstance(name, str) for name in held.values()):
        raise InputError(f"{index}: not the index of a model in several files")
    names = sorted({*held.values()})
    missing = [name for name in names if not (index.parent / name).is_file() or Path(name).name != name]
    if missing:
        raise InputError(f"{index}: names {missing[0]}, which is not there; fetch the whole model")
    return [index.parent / name for name in names]


def _readers(file: Path) -> Dict[str, Callable[[], Tensor]]:
    return _of_safetensors(file) if file.suffix == ".safetensors" else _of_pickle(file)


def _of_safetensors(file: Path) -> Dict[str, Callable[[], Tensor]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise InputError(f"{file}: {MISSING_LIBRARY}") from error
    try:
        stream: Any = safe_open(str(file), framework="pt")
        names = list(stream.keys())
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: truncated or damaged ({first_line(error)}); fetch it again") from error

    def reader(name: str) -> Callable[[], Tensor]:
        return lambda: stream.get_tensor(name)

    return {name: reader(name) for name in names}


def _of_pickle(file: Path) -> Dict[str, Callable[[], Tensor]]:
    loaded = load_safely(file)
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InputError(f"{file}: holds something else than tensors by name")

    def reader(name: str) -> Callable[[], Tensor]:
        return lambda: loaded[name]

    return {name: reader(name) for name in loaded}


def load_safely(file: Path) -> Any:
    """What PyTorch's safe loader reads of a file, its tensors on disk until they are used where that is possible.

    Raises:
        InputError: the file could execute something or is damaged.
    """
    fairseq_patches.apply()  # checkpoints of fairseq hold more than tensors
    last: Optional[Exception] = None
    for mapped in (True, False):  # files of old versions cannot be mapped
        try:
            return torch.load(file, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:  # whatever a file that is none happens to cause
            last = error
            if "Weights only load failed" in str(error):
                break
    assert last is not None
    harm = "could execute something when it is loaded"
    reason = harm if "Weights only" in str(last) else f"is damaged ({type(last).__name__}: {first_line(last)})"
    raise InputError(f"{file}: refused: it is no file of tensors alone, or it {reason}") from None
