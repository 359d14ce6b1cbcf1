"""Kernel ``torch``: plain PyTorch, on every device and type."""

from typing import Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.kernels.choosing import choose_largest
from docnmt_fairseq.modules.kernels.chosen_scores import ChosenScores
from docnmt_fairseq.modules.kernels.grouped_attention import attend_grouped
from docnmt_fairseq.modules.kernels.kernel import KERNELS, SelectionKernel
from docnmt_fairseq.modules.kernels.masked_documents import attend_masked
from docnmt_fairseq.modules.sentence_selection import Selection

WORDS_A_PLACE = 100  # measured: documents of up to so many words for every kept sentence are faster as a whole


@KERNELS.register("torch")
class GroupedKernel(SelectionKernel):
    """Small documents as a whole, with what is not selected masked; of others, selected sentences only."""

    def serves(self, device: torch.device, dtype: torch.dtype) -> bool:
        """Returns True."""
        return True

    def choose(
        self, q: Tensor, k: Tensor, layout: DocumentLayout, kept: np.ndarray, documents: Optional[np.ndarray] = None
    ) -> Tensor:
        """Returns the chosen rows; see :class:`SelectionKernel`."""
        return choose_largest(q, k, layout, kept, documents)

    def score(self, q: Tensor, k: Tensor, items: Tensor, sentence: Tensor) -> Tensor:
        """Returns R, float32 at least; see :class:`SelectionKernel`."""
        return ChosenScores.apply(q, k, items, sentence)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, selection: Selection, layout: DocumentLayout, dropout: float
    ) -> Tensor:
        """Returns [M, H, d_k]; see :class:`SelectionKernel`."""
        documents = np.arange(layout.sentences.rows) if selection.documents is None else selection.documents
        small = layout.document_words.lengths[documents] <= WORDS_A_PLACE * selection.sentence.size(-1)
        if small.all() or not small.any():
            return (attend_masked if small.all() else attend_grouped)(q, k, v, selection, layout, dropout)
        parts = []
        for rows, attend in ((documents[small], attend_masked), (documents[~small], attend_grouped)):
            part = selection.of_documents(rows, layout)
            parts.append((part.items, attend(q, k, v, part, layout, dropout)))
        items, outputs = zip(*parts)
        return torch.cat(outputs).index_select(0, torch.cat(items).argsort())
