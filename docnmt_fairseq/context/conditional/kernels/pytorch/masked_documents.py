"""Selected attention over all tokens of small documents at once, what is not selected masked: cheap while N is small.

With R spread over the document's sentences (a constant −10^30 where none was kept) and e_w the one-hot vector of token
w's sentence, q_i k_w/√d_k + R_{i, sentence(w)} = [q_i; √d_k R_i] [k_w; e_w]/√d_k: plain attention without a mask, so
PyTorch's own kernels serve, which hold no N×N matrix either (but for dropout on a CPU).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.batch.attention_plans import AttentionPlan
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.layers.attention import ragged_attention
from docnmt_fairseq.layers.precision import computing_type, without_autocast

HIDDEN = -1e30  # weighs nothing after softmax; −∞ times the zeros of e_w would not be a number
ALIGNMENT = 8  # widths that kernels compute with fastest are multiples of it


@dataclass(frozen=True)
class MaskedPlan:
    """Small documents, computed as a whole.

    Attributes:
        items: [M] their tokens.
        tokens: of these attend to all of their document.
        first: [M] the first sentence of the document of every token.
        place: [M] the place of the token's sentence in the document.
        most: the largest number of sentences.
    """

    items: Tensor
    tokens: AttentionPlan
    first: Tensor
    place: Tensor
    most: int

    @classmethod
    def of(cls, layout: DocumentLayout, documents: np.ndarray) -> "MaskedPlan":
        """The plan of some documents, ascending."""
        rows, sentences = Ragged(layout.document_tokens.lengths[documents], layout.device), layout.sentences
        first = np.repeat(sentences.offsets[documents], rows.lengths)
        of_documents = layout.tokens.lengths[sentences.items_of(documents)]
        own = np.repeat(sentences.items_of(documents), of_documents)
        return cls(
            items=layout.index(layout.document_tokens.items_of(documents)),
            tokens=AttentionPlan(rows, rows),
            first=layout.index(first),
            place=layout.index(own - first),
            most=int(sentences.lengths[documents].max()),
        )


def attend_masked(
    q: Tensor, k: Tensor, v: Tensor, sentence: Tensor, scores: Tensor, plan: MaskedPlan, dropout: float
) -> Tensor:
    """Attention to selected sentences, [M, H, d_k], at the cost of all tokens of their documents.

    Args:
        q, k, v: [N, H, d_k] packed token states of the batch.
        sentence, scores: [M, H, t] of the tokens of the plan, see ``Selection``.
        plan: the documents.
        dropout: probability of dropping an attention weight.
    """
    d, dtype = q.size(-1), computing_type(q.dtype)
    width = plan.most + 1  # the last for places that hold none
    width += -(d + width) % ALIGNMENT
    if len(plan.items) < len(q):
        q, k, v = (x.index_select(0, plan.items) for x in (q, k, v))
    with without_autocast(q):
        none = sentence < 0
        place = (sentence - plan.first[:, None, None]).masked_fill(none, width - 1)
        spread = scores.new_full((*scores.shape[:2], width), HIDDEN)
        spread = spread.scatter(-1, place, (scores * math.sqrt(d)).masked_fill(none, HIDDEN))
        of_token = (plan.place[:, None, None] == torch.arange(width, device=q.device)).to(dtype)  # e, [M, 1, width]
        queries = torch.cat([q.to(dtype), spread.to(dtype)], dim=-1)
        keys = torch.cat([k.to(dtype), of_token.expand(-1, q.size(1), -1)], dim=-1)
        values = F.pad(v.to(dtype), (0, width))  # the CPU's fast kernel wants values as wide as keys
        return ragged_attention(queries, keys, values, plan.tokens, dropout, scale=1 / math.sqrt(d))[..., :d].to(
            q.dtype
        )
