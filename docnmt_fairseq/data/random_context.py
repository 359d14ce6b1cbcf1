"""Random sentences of the training set as context ([M] sec. 6.2, an ablation: context without information)."""

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from docnmt_fairseq.data.context_dropout import Hidden
from docnmt_fairseq.data.index import Lines
from docnmt_fairseq.data.loading import load_side
from docnmt_fairseq.errors import InputError


class TrainingSentences:
    """Draws sentences for each sentence, seeded with its tokens, so that they do not depend on the batch or the file.

    Args:
        lines: source side of the training set, boundaries included.
        paragraph_symbol: id of ``<p>``, None if the dictionary lacks it.
        contexts: number of sentences drawn for each.
        seed: seed of the draws.
        longest: maximum number of tokens of a drawn sentence, None: no limit.

    Raises:
        InputError: the training set has no such sentence.
    """

    def __init__(
        self, lines: Lines, paragraph_symbol: Optional[int], contexts: int, seed: int, longest: Optional[int] = None
    ):
        self.lines, self.paragraph_symbol, self.contexts, self.seed = lines, paragraph_symbol, contexts, seed
        self.longest = longest
        if not any(self._is_sentence(number) for number in range(len(lines))):
            raise InputError("--context-selection training-set: the training set has no sentence")

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


def read_training_sentences(
    data_bin: Path, split: str, pair: Tuple[str, str], dictionary: Dictionary, dataset_impl: Optional[str]
) -> Lines:
    """Loads the source side of a training set; raises :class:`InputError` if it is missing.

    Args:
        data_bin: folder.
        split: name of the training set.
        pair: source and target language.
        dictionary: dictionary of the source.
        dataset_impl: fairseq's option.
    """
    lines = load_side(data_bin, split, pair, pair[0], dictionary, dataset_impl)
    if lines is None:
        files = f"{data_bin / split}.{'-'.join(pair)}.{pair[0]}.{{bin,idx}}"
        raise InputError(f"--context-selection training-set: {files}: no such files; give the data-bin of the training")
    return lines
