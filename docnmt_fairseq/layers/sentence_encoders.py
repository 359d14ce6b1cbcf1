"""Sentence encoders: one vector per sentence from its packed token states.

Since rows can be any vectors, sentence encoders also merge the children of tree nodes.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.layers.base import projection
from docnmt_fairseq.layers.precision import computing_type
from docnmt_fairseq.options import option
from docnmt_fairseq.registry import Registry


class SentenceEncoder(nn.Module, ABC):
    """Contract: ``cls(embed_dim, heads)``; each sentence is encoded independently."""

    @abstractmethod
    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        """Sentence encodings S [R, d] from packed token states x [N, d] of ``sentences``."""


SENTENCE_ENCODERS: Registry[SentenceEncoder] = Registry("sentence encoder")


@dataclass(frozen=True)
class SentenceEncoderOptions:
    """Option of mechanisms that encode sentences."""

    sentence_encoder: str = option("source2token", "encoder of sentences as one vector", names=SENTENCE_ENCODERS)


@SENTENCE_ENCODERS.register("source2token")
class Source2Token(SentenceEncoder):
    """s_j = Attention(q, S_j W^K, S_j W^V) W^O with one learned query q ∈ R^{d_k} per head ([T] eq. 1-2)."""

    def __init__(self, embed_dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.empty(heads, embed_dim // heads))
        self.k_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.v_proj = projection(embed_dim, embed_dim, gain=2**-0.5)
        self.out_proj = projection(embed_dim, embed_dim, zero_bias=True)
        nn.init.xavier_uniform_(self.query)

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        keys = self.k_proj(x).unflatten(-1, (self.heads, -1))  # [N, H, d_k]
        values = self.v_proj(x).unflatten(-1, (self.heads, -1))
        scores = (keys.to(computing_type(keys.dtype)) * self.query).sum(-1) / math.sqrt(keys.size(-1))  # [N, H]
        weights = sentences.softmax(scores)
        return self.out_proj(sentences.sum(weights.unsqueeze(-1) * values).flatten(1).to(values.dtype))


@SENTENCE_ENCODERS.register("multi-dim-source2token")
class MultiDimSource2Token(SentenceEncoder):
    """s_j = Σ_i a_i ⊙ x_i, a = softmax over the tokens of W_2 elu(W_1 x + b_1) + b_2, per feature ([T] 3.3.1)."""

    def __init__(self, embed_dim: int, heads: int):
        super().__init__()
        self.hidden = projection(embed_dim, embed_dim)  # W_1, b_1
        self.score = projection(embed_dim, embed_dim)  # W_2, b_2

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        return sentences.sum(sentences.softmax(self.score(F.elu(self.hidden(x)))) * x).to(x.dtype)


@SENTENCE_ENCODERS.register("mean")
class MeanOfTokens(SentenceEncoder):
    """s_j = (1/m_j) Σ_i x_i, without parameters."""

    def __init__(self, embed_dim: int, heads: int):
        super().__init__()

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        return sentences.mean(x)


@SENTENCE_ENCODERS.register("rnn")
class LastState(SentenceEncoder):
    """s_j = h_m, the state after the last of m tokens of the sentence, h_i = GRU(x_i, h_{i−1}), h_0 = 0."""

    def __init__(self, embed_dim: int, heads: int):
        super().__init__()
        self.rnn = nn.GRU(embed_dim, embed_dim)

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        # Step order, longest sentence first, computed on the device of the states to avoid a synchronisation.
        place = sentences.lengths_tensor.argsort(descending=True, stable=True).argsort()  # [R]
        order = (sentences.item_column * sentences.rows + place.index_select(0, sentences.item_row)).argsort()
        running = (sentences.lengths > np.arange(sentences.longest)[:, None]).sum(1)  # [longest]
        _, last = self.rnn(PackedSequence(x.index_select(0, order), torch.from_numpy(running)))
        return last[0].index_select(0, place)


TREE_MERGES: Registry[SentenceEncoder] = Registry("tree merge")
TREE_MERGES.register("average")(SENTENCE_ENCODERS["mean"])
TREE_MERGES.register("source2token")(SENTENCE_ENCODERS["source2token"])
TREE_MERGES.register("multi-dim-source2token")(SENTENCE_ENCODERS["multi-dim-source2token"])
