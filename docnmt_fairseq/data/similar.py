"""Tables of the most similar previous sentences of each sentence, next to a data-bin.

``docnmt embed neighbours`` writes them: next to ``train.de-en.de.idx`` is ``train.de-en.de.similar.npy``, [lines, K]
int16, the number of sentences back, most similar first, 0 for none; and ``similar.de.npz``, the sentence vectors from
which the same is computed for other text.
"""

from pathlib import Path
from typing import Tuple

import numpy as np

from docnmt_fairseq.data.index import Lines
from docnmt_fairseq.errors import InputError, first_line


def similar_file(prefix: Path) -> Path:
    """Path of the table of a side of a split, e.g. of ``data-bin/train.de-en.de``."""
    return prefix.with_name(prefix.name + ".similar.npy")


def vectors_file(data_bin: Path, language: str) -> Path:
    """Path of the sentence vectors of a language."""
    return data_bin / f"similar.{language}.npz"


def how_to_make(data_bin: Path, language: str, sentences: int) -> str:
    """Command that writes the files."""
    return f"docnmt embed neighbours {data_bin} --language {language} --sentences {sentences} --model MODEL"


def read_similar(data_bin: Path, split: str, pair: Tuple[str, str], lines: Lines, needed: int) -> np.ndarray:
    """Returns the table of a split, [lines, K] int16, memory-mapped if it is one file.

    Args:
        data_bin: folder.
        split: name of the split.
        pair: source and target language.
        lines: source dataset of fairseq; train, train1, … may be combined and repeated.
        needed: number of context sentences of the model, at most K.

    Raises:
        InputError: a file is missing, damaged or of another data-bin, or K is too small.
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
        raise InputError(f"{path}: no such file; the model's context is similar sentences: run {command}") from None
    except Exception as error:  # NumPy raises many kinds of errors for damaged files
        raise InputError(f"{path}: damaged: {first_line(error)}; run {command}") from error
    if table.ndim != 2 or table.dtype != np.int16 or len(table) != lines or table.shape[1] < needed:
        expected = f"expected int16 [{lines}, at least {needed}]"
        raise InputError(f"{path}: {table.dtype} {list(table.shape)}, {expected}; run {command}")
    return table


def within_chunk(back: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Returns how many rows back in a chunk similar sentences are, [n, K], 0 for sentences outside of the chunk.

    Args:
        back: [n, K] how many sentences back in the document.
        rows: [n] sentences of the chunk, ascending; some may be missing.
    """
    sentence = rows[:, None] - back  # [n, K]
    place = np.searchsorted(rows, sentence)
    present = rows[np.minimum(place, len(rows) - 1)] == sentence  # a sentence itself is 0 rows back
    return np.where(present, np.arange(len(rows))[:, None] - place, 0)
