"""A toy data-bin with extra sources: a text `mt` and features `image`."""

import shutil
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from tests.support.documents import DOCUMENTS


def source_lines(split):
    """Returns the source side of a toy split."""
    lines = []
    for document in DOCUMENTS[split]:
        for number, paragraph in enumerate(document):
            lines += (["<p>"] if number else []) + paragraph
        lines.append("")
    return lines


def is_sentence(line):
    return line not in ("", "<p>")


def write_text(prefix, lines, dictionary):
    """Writes a binarised text."""
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin", dtype=np.int32)
    for line in lines:
        builder.add_item(dictionary.encode_line(line, add_if_not_exist=False))
    builder.finalize(f"{prefix}.idx")


def with_extra_sources(data_bin: Path, folder: Path, width=3):
    """Returns a copy of the data-bin with a text that says every source sentence twice, and features of its words."""
    shutil.copytree(data_bin, folder)
    shutil.copy(folder / "dict.src.txt", folder / "dict.mt.txt")
    dictionary = Dictionary.load(str(folder / "dict.mt.txt"))
    generator = torch.Generator().manual_seed(5)
    of_word = torch.randn(len(dictionary), width, generator=generator).numpy()
    for split in DOCUMENTS:
        lines = source_lines(split)
        twice = [f"{line} {line}" if is_sentence(line) else line for line in lines]
        write_text(folder / f"{split}.src-tgt.mt", twice, dictionary)
        words = [[dictionary.index(word) for word in line.split()] for line in lines if is_sentence(line)]
        offsets = np.cumsum([0, *map(len, words)])
        np.savez(folder / f"{split}.image.npz", values=of_word[np.concatenate(words)], offsets=offsets)
    return folder
