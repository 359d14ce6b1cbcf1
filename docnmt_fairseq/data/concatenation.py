"""Concatenation: a sentence and the previous ones of its document as one sequence, separated by a break symbol.

Source: [TS] J. Tiedemann and Y. Scherrer, Neural Machine Translation with Extended Context, DiscoMT 2017, sec. 3:
extended source (2+1, 2-to-1 here) and extended translation units (2+2, 2-to-2).
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from torch import Tensor

from docnmt_fairseq.data.chunking import running_total
from docnmt_fairseq.data.dataset import sentence_sizes
from docnmt_fairseq.data.index import DocumentIndex, Lines, Split

Hypothesis = Dict[str, Any]  # hypothesis of fairseq's search


def context_counts(documents: np.ndarray, tokens: np.ndarray, most: Union[int, np.ndarray], longest: int) -> np.ndarray:
    """Returns the number of previous sentences in the window of each sentence, [S].

    Args:
        documents: [D + 1] first sentence of every document, and the number of sentences.
        tokens: [S] tokens of every sentence including its end, which a break replaces in a window.
        most: maximum number of previous sentences, [S] or a number.
        longest: maximum number of tokens of a window; the earliest sentences are left out. A longer sentence has no
            context.
    """
    first = np.repeat(documents[:-1], np.diff(documents))  # [S]
    sentence = np.arange(len(tokens))
    counts = np.minimum(sentence - first, most)
    total = running_total(tokens)
    for number in range(int(counts.max(initial=0)), 0, -1):
        at = np.flatnonzero(counts == number)
        counts[at[total[at + 1] - total[at - number] > longest]] -= 1
    return counts


class Windows:
    """Windows of one side as an indexed dataset: item i is the window of sentence ``first + i``."""

    def __init__(self, lines: Lines, index: DocumentIndex, break_symbol: int, first: int = 0):
        self.lines, self.index, self.break_symbol, self.first = lines, index, break_symbol, first
        self.tokens = sentence_sizes(lines, index)  # [S]
        self.counts = np.zeros(len(index.items), dtype=np.int64)  # [S] sentences of context

    def fill(self, most: Union[int, np.ndarray], longest: int) -> None:
        """Sets the windows to ``most`` previous sentences, or fewer, see :func:`context_counts`."""
        self.counts = context_counts(self.index.documents, self.tokens, most, longest)

    @property
    def sizes(self) -> np.ndarray:
        """Number of tokens of every window, [items]."""
        total, end = running_total(self.tokens), np.arange(self.first, len(self.tokens)) + 1
        return total[end] - total[end - 1 - self.counts[self.first :]]

    def __len__(self) -> int:
        return len(self.tokens) - self.first

    def __getitem__(self, number: int) -> Tensor:
        last = self.first + number
        items = self.index.items[last - self.counts[last] : last + 1]
        *context, sentence = (self.lines[int(item)] for item in items)
        between = sentence.new_tensor([self.break_symbol])
        return torch.cat([*(part for tokens in context for part in (tokens[:-1], between)), sentence])


class ConcatenationDataset(LanguagePairDataset):
    """fairseq's dataset of windows; a sample id is the item number of the window's last sentence in the data-bin.

    Args:
        split: documents.
        dictionaries: dictionaries of source and target, with ``break_symbol``.
        break_symbol: symbol between sentences.
        sentences: maximum sentences of a window, of source and target; not more of the target.
        longest: maximum tokens of a window, of source and target; ``fit`` can lower it.
        carried: number of leading lines that are context only; ids start after them.
        shuffle: as in fairseq.
    """

    def __init__(
        self,
        split: Split,
        dictionaries: Sequence[Dictionary],
        break_symbol: str,
        sentences: Tuple[int, int],
        longest: Tuple[int, int],
        carried: int = 0,
        shuffle: bool = False,
    ):
        index = split.index
        self.index, self.sentences, self.carried = index, sentences, carried
        first = int(np.searchsorted(index.items, carried))
        source_dict, target_dict = dictionaries
        windows = Windows(split.source, index, source_dict.index(break_symbol), first)
        translations = None
        if split.target is not None:
            translations = Windows(split.target, index, target_dict.index(break_symbol), first)
        self.longest = longest
        self._fill(windows, translations)
        target_sizes = None if translations is None else translations.sizes
        super().__init__(windows, windows.sizes, source_dict, translations, target_sizes, target_dict, shuffle=shuffle)

    def _fill(self, source: Windows, target: Optional[Windows]) -> None:
        """Sets the windows; those of the source do not depend on the target, which is unknown in translation."""
        source.fill(self.sentences[0] - 1, self.longest[0])
        if target is not None:
            target.fill(np.minimum(source.counts, self.sentences[1] - 1), self.longest[1])

    def fit(self, max_source: int, max_target: int) -> None:
        """Shortens windows to the maximum positions of a model."""
        longest = min(self.longest[0], max_source), min(self.longest[1], max_target)
        if longest == self.longest:
            return
        self.longest = longest
        self._fill(self.src, self.tgt)
        self.src_sizes = self.sizes = self.src.sizes
        if self.tgt is not None:
            self.tgt_sizes = self.tgt.sizes
            self.sizes = np.stack([self.src_sizes, self.tgt_sizes], axis=1)

    def decoded_sentences(self) -> np.ndarray:
        """Returns the number of translated sentences of every window, [items]: one."""
        return np.ones(len(self), dtype=np.int64)

    def __getitem__(self, number: int) -> Dict[str, Any]:
        item = int(self.index.items[self.src.first + number])
        return {**super().__getitem__(int(number)), "id": item - self.carried}

    def batch_by_size(self, indices: np.ndarray, *args: Any, **kwargs: Any) -> List[np.ndarray]:
        """Returns fairseq's batches, including the last one if its size is not the required multiple."""
        if not len(indices):
            return []
        batches = super().batch_by_size(indices, *args, **kwargs)
        left = indices[sum(map(len, batches)) :]
        return [*batches, left] if len(left) else batches


def sentence_bounds(tokens: Tensor, break_symbol: int, number: int) -> Tuple[int, int]:
    """Returns start and end of a sentence of a window, from 0, or of the last one if there are fewer.

    The end includes the break after the sentence.
    """
    ends = [*(tokens.eq(break_symbol).nonzero().flatten() + 1).tolist(), len(tokens)]
    number = min(number, len(ends) - 1)
    return (ends[number - 1] if number else 0), ends[number]


def keep_sentence(
    hypothesis: Hypothesis, number: int, break_symbol: int, eos: int, len_penalty: Optional[float]
) -> Hypothesis:
    """Returns a sentence of the hypothesis of a window: tokens, their scores, and the score of the sentence.

    Args:
        hypothesis: hypothesis of fairseq's search; returned unchanged without a break.
        number: number of the sentence, from 0; if there are fewer, the last one is returned.
        break_symbol: id of the break in the target dictionary.
        eos: id of the end of sentence, which replaces a break after the sentence.
        len_penalty: exponent of the length by which scores are divided; None: no normalisation.
    """
    start, end = sentence_bounds(hypothesis["tokens"], break_symbol, number)
    if end - start == len(hypothesis["tokens"]):
        return hypothesis
    tokens = hypothesis["tokens"][start:end]
    kept = dict(hypothesis, tokens=tokens.masked_fill(tokens.eq(break_symbol), eos))
    kept["positional_scores"] = hypothesis["positional_scores"][start:end]
    length = 1 if len_penalty is None else len(tokens) ** len_penalty
    kept["score"] = kept["positional_scores"].sum() / length
    if hypothesis["attention"] is not None and hypothesis["attention"].dim() == 2:
        kept["attention"] = hypothesis["attention"][:, start:end]  # [m, target]
    return kept
