"""Precomputed features of sentences: memory-mapped matrices next to a data-bin."""

import zipfile
from functools import cached_property
from pathlib import Path
from typing import Dict, Literal, Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.corpus.prepared import parent_folder
from docnmt_fairseq.data.index import Marks
from docnmt_fairseq.errors import InputError, first_line

LOCAL_HEADER = 30  # bytes of the header of a zip member without its name and extra field


class FeatureFile:
    """Features of one split: ``SPLIT.NAME.npy``, or ``SPLIT.NAME.npz`` for a variable number of rows per sentence.

    An ``.npy`` contains [lines, d] or [lines, n, d]. An ``.npz`` contains ``values`` [total, d] and ``offsets``
    [lines + 1], the first row of each line, and the total. Lines are the lines of the delimited text, whose boundaries
    are ignored, or the sentences only; their number decides.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            shape, dtype, offsets = self.values.shape, self.values.dtype, self.offsets
        except Exception as error:  # NumPy raises many kinds of errors for damaged files
            raise InputError(f"{path}: not a feature file ({first_line(error)})") from error
        if offsets is None:
            expected, good = "[lines, d] or [lines, n, d]", len(shape) in (2, 3)
        else:
            expected = "[total, d] with offsets that increase from 0 to total"
            good = len(shape) == 2 and offsets.ndim == 1 and len(offsets) > 0 and bool((np.diff(offsets) >= 0).all())
            good = good and offsets[0] == 0 and offsets[-1] == shape[0]
        if not good or dtype.kind not in "fiu":
            raise InputError(f"{path}: expected numbers {expected}; found {dtype} {list(shape)}")
        self.width = shape[-1]
        self.lines = shape[0] if offsets is None else len(offsets) - 1

    @cached_property
    def offsets(self) -> Optional[np.ndarray]:
        """First row of each line, and the total, [lines + 1]; None if all lines have the same number of rows."""
        if self.path.suffix == ".npy":
            return None
        with np.load(self.path) as archive:
            return archive["offsets"].astype(np.int64)

    @cached_property
    def values(self) -> np.ndarray:
        """Features, memory-mapped unless the archive is compressed."""
        if self.path.suffix == ".npy":
            return np.load(self.path, mmap_mode="r")
        with zipfile.ZipFile(self.path) as archive:
            member = archive.getinfo("values.npy")
        if member.compress_type != zipfile.ZIP_STORED:
            with np.load(self.path) as arrays:
                return arrays["values"]
        with open(self.path, "rb") as stream:
            stream.seek(member.header_offset)
            header = stream.read(LOCAL_HEADER)
            lengths = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))  # of name and extra field
            stream.seek(sum(lengths), 1)
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, in_columns, dtype = read(stream)
            order: Literal["F", "C"] = "F" if in_columns else "C"
            return np.memmap(self.path, dtype, mode="r", offset=stream.tell(), shape=shape, order=order)

    def __getstate__(self) -> Dict[str, object]:
        """State for other processes, which open the file again."""
        return {name: value for name, value in vars(self).items() if name not in ("values", "offsets")}

    def rows(self, line: int) -> np.ndarray:
        """Returns the features of a line, [n, d] float32; raises :class:`InputError` for NaN and infinity."""
        if self.offsets is not None:
            values = self.values[self.offsets[line] : self.offsets[line + 1]]
        else:
            values = self.values[line].reshape(-1, self.width)
        with np.errstate(over="ignore"):
            rows = np.array(values, dtype=np.float32)
        if not np.isfinite(rows).all():
            raise InputError(f"{self.path}: line {line + 1}: features must be finite numbers")
        return rows

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each line, [lines]."""
        if self.offsets is not None:
            return np.diff(self.offsets)
        return np.full(self.lines, 1 if self.values.ndim == 2 else self.values.shape[1])


class FeatureLines:
    """Features as an indexed dataset of the lines of a data-bin."""

    def __init__(self, file: FeatureFile, marks: Marks):
        is_sentence = marks.is_sentence
        lines, sentences = len(is_sentence), int(is_sentence.sum())
        if file.lines not in (lines, sentences):
            raise InputError(
                f"{file.path}: expected features of {lines:,} lines, or of the {sentences:,} sentences among them, "
                f"found {file.lines:,}"
            )
        self.file = file
        self.line_of: np.ndarray = np.arange(lines) if file.lines == lines else np.cumsum(is_sentence) - 1
        self.sizes = np.where(is_sentence, file.sizes[self.line_of], 0)

    def __getitem__(self, item: int) -> Tensor:
        return torch.from_numpy(self.file.rows(int(self.line_of[item])))

    def __len__(self) -> int:
        return len(self.line_of)


def find_features(data_bin: Path, split: str, name: str) -> FeatureFile:
    """Returns the features of a split, in the data-bin or its parent folder."""
    folders = (data_bin, parent_folder(data_bin))
    candidates = [folder / f"{split}.{name}{suffix}" for folder in folders for suffix in (".npy", ".npz")]
    found = [path for path in candidates if path.is_file()]
    if len(found) != 1:
        what = f"several: {', '.join(map(str, found))}" if found else "no such file, also not in the parent folder"
        raise InputError(f"--extra-sources features:{name}: {data_bin}/{split}.{name}.npy or .npz: {what}")
    return FeatureFile(found[0])
