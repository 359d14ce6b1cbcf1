"""What encoders do with the rows of a batch that any task, and any step of a search, may bring."""

from typing import Optional, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.layout import DocumentLayout


def completed(src_tokens: Tensor, layout: Optional[DocumentLayout], padding: int) -> Tuple[Tensor, DocumentLayout]:
    """Returns right-padded tokens [S, m] and a layout on their device, whatever the task gives."""
    if layout is not None:
        return src_tokens, layout.to(src_tokens.device)
    real = src_tokens.ne(padding)
    order = real.to(torch.int8).argsort(dim=1, descending=True, stable=True)  # pads to the right
    lengths = real.sum(1).cpu().numpy()
    return src_tokens.gather(1, order), DocumentLayout.of_single_sentences(lengths).to(src_tokens.device)


def sentences_of_hypotheses(row_sentence: Tensor, new_order: Tensor) -> Tuple[Tensor, Tensor]:
    """Returns the sentences that are left [S], and which of these each of the rows ``new_order`` is of, [B].

    Every sentence has as many rows; in an order where they have not, every row is a sentence of its own.

    Args:
        row_sentence: [·] the sentence of each row before.
        new_order: [B] rows.
    """
    rows = row_sentence.index_select(0, new_order)
    kept, hypotheses = torch.unique_consecutive(rows, return_counts=True)
    if not hypotheses.eq(hypotheses[:1]).all():  # not an order of a search
        kept, hypotheses = rows, torch.ones_like(rows)
    return kept, torch.arange(len(kept), device=rows.device).repeat_interleave(hypotheses)
