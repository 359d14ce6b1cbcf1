"""Context sentences that are not neighbours: the most similar previous ones, or random ones of the training set.

``docnmt embed neighbours`` writes the similar sentences: next to ``train.de-en.de.idx`` is
``train.de-en.de.similar.npy``, [lines, K] int16, the number of sentences back, most similar first, 0 for none; and
``similar.de.npz``, the sentence vectors from which the same is computed for other text. Random sentences are an
ablation, context without information ([M] sec. 6.2).
"""

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from torch import Tensor

from docnmt_fairseq.data.chunking import Hidden
from docnmt_fairseq.data.index import Lines
from docnmt_fairseq.errors import InputError, first_line

# --- Similar sentences ---


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
    """Returns the table of a split, [lines, K] int16, memory-mapped if it is one file."""
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
    except Exception as error:  # NumPy raises many kinds of errors for damaged files
        raise InputError(f"{path}: similar sentences cannot be read: {first_line(error)}; run {command}") from error
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


# --- Random sentences ---


class TrainingSentences:
    """Draws sentences for each sentence, seeded with its tokens, so that they do not depend on the batch or the file.

    Args:
        lines: source side of the training set, boundaries included.
        paragraph_symbol: id of ``<p>``, None if the dictionary lacks it.
        contexts: number of sentences drawn for each.
        seed: seed of the draws.
        longest: maximum number of tokens of a drawn sentence, None: no limit.
    """

    def __init__(
        self, lines: Lines, paragraph_symbol: Optional[int], contexts: int, seed: int, longest: Optional[int] = None
    ):
        self.lines, self.paragraph_symbol, self.contexts, self.seed = lines, paragraph_symbol, contexts, seed
        self.longest = longest

    def drawn(self, tokens: Tensor, epoch: int = 0) -> List[Tensor]:
        """Returns the tokens of the sentences drawn for a sentence; ``epoch`` changes the draws in training."""
        generator = np.random.default_rng([self.seed, epoch, *tokens.tolist()])
        found: List[Tensor] = []
        while len(found) < self.contexts:
            number = int(generator.integers(len(self.lines)))
            if self._is_sentence(number):
                found.append(self.lines[number])
        return found

    def _is_sentence(self, number: int) -> bool:
        length = int(self.lines.sizes[number])
        if self.longest is not None and length > self.longest:
            return False
        return length > 2 or (length == 2 and int(self.lines[number][0]) != self.paragraph_symbol)


def drawn_rows(chunks: Sequence[Tuple[int, Sequence[Sequence[Tensor]]]]) -> np.ndarray:
    """Returns the rows drawn for each row of a batch, [R, K], -1: none; drawn rows follow those of all chunks.

    Args:
        chunks: number of rows of each chunk, and what was drawn for each row; empty for a chunk without context.
    """
    counts = np.concatenate([[len(several) for several in drawn] or [0] * rows for rows, drawn in chunks])
    most = int(counts.max(initial=1))
    present = np.arange(most) < counts[:, None]
    number = len(counts) + np.cumsum(present).reshape(present.shape) - 1
    of_chunks = np.where(present, number, -1)
    return np.concatenate([of_chunks, np.full((int(counts.sum()), most), -1)])


def drawn_chunk(chunks: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """Returns the sentences drawn for the items of a dataset as one more item, which is context only."""
    found = [tokens for chunk in chunks for several in chunk["drawn"] for tokens in several]
    nothing = np.zeros(len(found), dtype=np.int64)
    similar = chunks[0]["similar"]
    return {
        "hidden": Hidden.ALL,
        "ids": nothing[:0],
        "decoded": nothing > 0,
        "source": found,
        "drawn": [],
        "target": [],
        "extra": [None if lines is None else [] for lines in chunks[0]["extra"]],
        "sentence_position": nothing,
        "unit_position": np.zeros((len(chunks[0]["unit_position"]), len(found)), dtype=np.int64),
        "similar": None if similar is None else np.zeros((len(found), similar.shape[1]), dtype=similar.dtype),
    }
