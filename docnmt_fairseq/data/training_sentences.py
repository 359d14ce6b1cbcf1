"""Sentences of the training set as context of any sentence ([M] sec. 6.2, an ablation: context that has no bearing)."""

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from fairseq.data import Dictionary
from torch import Tensor

from docnmt_fairseq.data.context_dropout import Hidden
from docnmt_fairseq.data.index import Lines
from docnmt_fairseq.data.integrity import load_side
from docnmt_fairseq.errors import InputError


class TrainingSentences:
    """Draws sentences for each sentence, by its own tokens: the same in whatever batch, file or dialogue it stands.

    Args:
        lines: the training set's source, marks included.
        paragraph_symbol: number of ``<p>``, None if the dictionary lacks it.
        contexts: how many are drawn for each.
        seed: of the draws.
        longest: tokens of a sentence that may be drawn, None: any number.

    Raises:
        InputError: the training set has no such sentence.
    """

    def __init__(
        self, lines: Lines, paragraph_symbol: Optional[int], contexts: int, seed: int, longest: Optional[int] = None
    ):
        self.lines, self.paragraph_symbol, self.contexts, self.seed = lines, paragraph_symbol, contexts, seed
        self.longest = longest
        if not any(self._is_sentence(number) for number in range(len(lines))):
            raise InputError("the model's context is drawn from the training set, which has no sentence")

    def drawn(self, tokens: Tensor, epoch: int = 0) -> List[Tensor]:
        """The tokens of the sentences that are drawn for one.

        Args:
            tokens: of the sentence.
            epoch: of a training, so that each draws anew.
        """
        chance = np.random.default_rng([self.seed, epoch, *tokens.tolist()])
        found: List[Tensor] = []
        while len(found) < self.contexts:
            number = int(chance.integers(len(self.lines)))
            if self._is_sentence(number):
                found.append(self.lines[number])
        return found

    def _is_sentence(self, number: int) -> bool:
        length = int(self.lines.sizes[number])
        if self.longest is not None and length > self.longest:
            return False
        return length > 2 or (length == 2 and int(self.lines[number][0]) != self.paragraph_symbol)


def drawn_rows(pieces: Sequence[Tuple[int, Sequence[Sequence[Tensor]]]]) -> np.ndarray:
    """Which rows of a batch were drawn for each, [R, K], -1: none; those drawn stand behind all pieces, in their order.

    Args:
        pieces: how many rows each has, and what was drawn for each of its rows, nothing for a piece without context.
    """
    counts = np.concatenate([[len(several) for several in drawn] or [0] * rows for rows, drawn in pieces])
    most = int(counts.max(initial=1))
    there = np.arange(most) < counts[:, None]
    number = len(counts) + np.cumsum(there).reshape(there.shape) - 1
    of_pieces = np.where(there, number, -1)
    return np.concatenate([of_pieces, np.full((int(counts.sum()), most), -1)])


def drawn_piece(pieces: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """The sentences that were drawn for those of some pieces, as one more that is context only and has none itself.

    Args:
        pieces: items of a dataset of documents.
    """
    found = [tokens for piece in pieces for several in piece["drawn"] for tokens in several]
    nothing = np.zeros(len(found), dtype=np.int64)
    similar = pieces[0]["similar"]
    return {
        "hidden": Hidden.ALL,
        "ids": nothing[:0],
        "decoded": nothing > 0,
        "source": found,
        "drawn": [],
        "target": [],
        "extra": [None if lines is None else [] for lines in pieces[0]["extra"]],
        "sentence_position": nothing,
        "unit_position": np.zeros((len(pieces[0]["unit_position"]), len(found)), dtype=np.int64),
        "similar": None if similar is None else np.zeros((len(found), similar.shape[1]), dtype=similar.dtype),
    }


def read_training_sentences(
    data_bin: Path,
    split: str,
    pair: Tuple[str, str],
    dictionary: Dictionary,
    dataset_impl: Optional[str],
) -> Lines:
    """The source side of a training set.

    Args:
        data_bin: its folder.
        split: its name.
        pair: source and target language.
        dictionary: of the source.
        dataset_impl: fairseq's option.

    Raises:
        InputError: it is not there, or damaged.
    """
    lines = load_side(data_bin, split, pair, pair[0], dictionary, dataset_impl)
    if lines is None:
        raise InputError(
            f"the model's context is drawn from the training set (--context-selection training-set), but there are no "
            f"{data_bin / split}.{'-'.join(pair)}.{pair[0]}.{{bin,idx}}; give the data-bin that it was trained on"
        )
    return lines
