"""Selected attention over all words of small documents at once, what is not selected masked: cheap while N is small.

With R spread over the document's sentences (a constant −10^30 where none was kept) and e_w the one-hot vector of word
w's sentence, q_i k_w/√d_k + R_{i, sentence(w)} = [q_i; √d_k R_i] [k_w; e_w]/√d_k: plain attention without a mask, so
PyTorch's own kernels serve, which hold no N×N matrix either (but for dropout on a CPU).
"""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.modules.kernels.precision import computing_type, without_autocast
from docnmt_fairseq.modules.ragged_attention import ragged_attention
from docnmt_fairseq.modules.sentence_selection import Selection
from docnmt_fairseq.ragged import Ragged

HIDDEN = -1e30  # weighs nothing after softmax; −∞ times the zeros of e_w would not be a number
ALIGNMENT = 8  # widths that kernels compute with fastest are multiples of it


def attend_masked(
    q: Tensor, k: Tensor, v: Tensor, selection: Selection, layout: DocumentLayout, dropout: float
) -> Tensor:
    """Returns attention to selected sentences, [M, H, d_k], at the cost of all words; see ``SelectionKernel``."""
    rows = np.arange(layout.sentences.rows) if selection.documents is None else selection.documents
    d, dtype = q.size(-1), computing_type(q.dtype)
    width = int(layout.sentences.lengths[rows].max()) + 1  # the last for places that hold none
    width += -(d + width) % ALIGNMENT
    if len(selection.items) < len(q):
        q, k, v = (x.index_select(0, selection.items) for x in (q, k, v))
    own = layout.token_sentence.index_select(0, selection.items)
    first = own - layout.sentences.item_column.index_select(0, own)  # [M] first sentence of the word's document
    with without_autocast(q):
        scores, none = selection.scores, selection.sentence < 0
        place = (selection.sentence - first[:, None, None]).masked_fill(none, width - 1)
        spread = scores.new_full((*scores.shape[:2], width), HIDDEN)
        spread = spread.scatter(-1, place, (scores * math.sqrt(d)).masked_fill(none, HIDDEN))
        of_word = ((own - first)[:, None, None] == torch.arange(width, device=q.device)).to(dtype)  # e, [M, 1, width]
        queries = torch.cat([q.to(dtype), spread.to(dtype)], dim=-1)
        keys = torch.cat([k.to(dtype), of_word.expand(-1, q.size(1), -1)], dim=-1)
        values = F.pad(v.to(dtype), (0, width))  # the CPU's fast kernel wants values as wide as keys
        words = Ragged(layout.document_words.lengths[rows], q.device)
        plan = layout.plan(f"selected {rows.tobytes().hex()}", words, words)
        return ragged_attention(queries, keys, values, plan, dropout, scale=1 / math.sqrt(d))[..., :d].to(q.dtype)
