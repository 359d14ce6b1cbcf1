"""Which earlier sentences of its document a sentence is most like: files beside a data-bin, and pieces of documents.

``docnmt embed neighbours`` writes them: beside ``train.de-en.de.idx`` stands ``train.de-en.de.similar.npy``, [lines, K]
int16: how many sentences back, most similar first, 0 where there are no more; and ``similar.de.npz``, the sentence
vectors by which the same is found for text that is in no data-bin.
"""

from pathlib import Path
from typing import Tuple

import numpy as np

from docnmt_fairseq.data.index import Lines
from docnmt_fairseq.errors import InputError, first_line


def similar_file(prefix: Path) -> Path:
    """The file of a side of a split, e.g. of ``data-bin/train.de-en.de``."""
    return prefix.with_name(prefix.name + ".similar.npy")


def vectors_file(data_bin: Path, language: str) -> Path:
    """The file of a language's sentence vectors."""
    return data_bin / f"similar.{language}.npz"


def how_to_make(data_bin: Path, language: str, sentences: int) -> str:
    """The command that writes the files."""
    return f"docnmt embed neighbours {data_bin} --language {language} --sentences {sentences} --model MODEL"


def read_similar(data_bin: Path, split: str, pair: Tuple[str, str], lines: Lines, needed: int) -> np.ndarray:
    """A split's table, [lines, K] int16, memory-mapped where it is one file.

    Args:
        data_bin: its folder.
        split: its name.
        pair: source and target language.
        lines: the source, as fairseq reads it: train, train1, … may be combined, and repeated.
        needed: the model's context sentences, at most K.

    Raises:
        InputError: a file is missing or damaged, or does not belong to the data-bin; K is too small.
    """
    source, target = pair
    parts = getattr(lines, "datasets", [lines])
    tables = []
    for number, part in enumerate(parts):
        name = f"{split}{number or ''}"
        prefixes = [data_bin / f"{name}.{both}.{source}" for both in (f"{source}-{target}", f"{target}-{source}")]
        prefix = next((prefix for prefix in prefixes if Path(f"{prefix}.idx").exists()), prefixes[0])
        tables.append(_read(similar_file(prefix), len(part), needed, how_to_make(data_bin, source, max(needed, 10))))
    repeats = getattr(lines, "sample_ratios", [1] * len(parts))
    if len(tables) == 1 and repeats == [1]:
        return tables[0]
    narrowest = min(table.shape[1] for table in tables)
    return np.concatenate([np.tile(table[:, :narrowest], (often, 1)) for table, often in zip(tables, repeats)])


def _read(path: Path, lines: int, needed: int, command: str) -> np.ndarray:
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"the model's context is similar sentences, but there is no {path}; run {command}") from None
    except Exception as error:  # NumPy raises many kinds of errors for damaged files
        raise InputError(f"{path}: damaged: {first_line(error)}; make it anew with {command}") from error
    if table.ndim != 2 or table.dtype != np.int16 or len(table) != lines:
        found = f"{table.dtype} {list(table.shape)}"
        raise InputError(f"{path}: holds {found}, expected a row for each of {lines:,} lines; make it with {command}")
    if table.shape[1] < needed:
        raise InputError(
            f"the model has {needed} similar sentences as context, {path} is for {table.shape[1]}; run {command}"
        )
    return table


def within_piece(back: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How many rows of a piece back similar sentences stand, [n, K], 0 where they are not in the piece.

    Args:
        back: [n, K] how many sentences back in the document.
        rows: [n] the sentences of the piece, ascending; some may be left out.
    """
    sentence = rows[:, None] - back  # [n, K]
    place = np.searchsorted(rows, sentence)
    there = rows[np.minimum(place, len(rows) - 1)] == sentence  # where it is itself, 0 stays 0
    return np.where(there, np.arange(len(rows))[:, None] - place, 0)
