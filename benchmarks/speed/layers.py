"""The layer types of [T] Table 1, as one step (forward and backward) on one random document of n sentences of m words.

``CORES`` compute attention and selection from given queries, keys and values; ``MODULES`` are whole layers, with their
projections, sentence encodings and trees.
"""

import math
from dataclasses import dataclass
from typing import Callable, Dict, Optional

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.batch.attention_plans import ToSentences, WithinSentences
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, LayerConfig
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.selection import KeptSentences
from docnmt_fairseq.context.conditional.tree import TreesOfBatch, path_sums
from docnmt_fairseq.layers.attention import SentenceSelfAttention, ragged_attention
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS

TOP_T = 4


@dataclass(frozen=True)
class Layer:
    """A row of the table.

    Attributes:
        label: as it is called.
        cost: as Table 1 has it.
        exponents: of the cost's leading terms in n and in m, in words.
        most_sentences: of the sizes measured.
    """

    label: str
    cost: str
    exponents: str
    most_sentences: int


LAYERS = {
    "sentence": Layer("self-attention, sentence by sentence", "n·m²", "1; 2", 4096),
    "matrix": Layer("self-attention, whole document, as matrices", "n²·m²", "2; 2", 128),
    "flash": Layer("self-attention, whole document, flash", "n²·m²", "2; 2", 512),
    "encodings": Layer("attention over sentence encodings", "n²·m", "2; 1", 1024),
    "conditional": Layer("conditional", "n²·m + n·t·m²", "1 to 2; 1 to 2", 1024),
    "tree": Layer("hierarchical conditional (tree)", "n·m·t·(log n + m)", "1 and log; 1 to 2", 4096),
    "source2token": Layer("source2token", "n·m", "1; 1", 4096),
}


class Document:
    """One document: n sentences of m words, H heads of d_k."""

    def __init__(self, sentences: int, words: int, heads: int, head_dim: int, kernel: str):
        self.sentences, self.heads, self.head_dim, self.kernel = sentences, heads, head_dim, kernel
        zeros = np.zeros(sentences, dtype=np.int64)
        lengths, places = np.full(sentences, words), np.arange(sentences)
        self.layout = DocumentLayout.of(lengths, np.array([sentences]), places, zeros)
        self.words = self.layout.tokens.total
        self.kept = KeptSentences(TOP_T)

    def random(self, rows: int) -> Tensor:
        """Returns [rows, H, d_k] that want a gradient."""
        return torch.randn(rows, self.heads, self.head_dim, requires_grad=True)


def sentence(d: Document) -> Callable[[], Tensor]:
    q, k, v = (d.random(d.words) for _ in range(3))
    return lambda: ragged_attention(q, k, v, d.layout.plan(WithinSentences()))


def matrix(d: Document) -> Callable[[], Tensor]:
    q, k, v = (d.random(d.words) for _ in range(3))

    def forward() -> Tensor:
        scores = q.transpose(0, 1) @ k.permute(1, 2, 0) / math.sqrt(d.head_dim)
        return torch.softmax(scores, -1) @ v.transpose(0, 1)

    return forward


def flash(d: Document) -> Callable[[], Tensor]:
    q, k, v = (torch.randn(1, d.heads, d.words, d.head_dim, requires_grad=True) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v)


def encodings(d: Document) -> Callable[[], Tensor]:
    q, k, v = d.random(d.words), d.random(d.sentences), d.random(d.sentences)
    return lambda: ragged_attention(q, k, v, d.layout.plan(ToSentences()))


def conditional(d: Document) -> Callable[[], Tensor]:
    q, k, v, q_s, k_s = *(d.random(d.words) for _ in range(4)), d.random(d.sentences)
    return lambda: conditional_attention(q, k, v, q_s, k_s, d.layout, d.kept, kernel=d.kernel)


def tree(d: Document) -> Callable[[], Tensor]:
    trees = d.layout.plan(TreesOfBatch())
    q, k, v, q_s, keys = *(d.random(d.words) for _ in range(4)), d.random(sum(trees.sizes))

    def forward() -> Tensor:
        sums = path_sums(keys, trees)[: d.sentences]
        return conditional_attention(
            *(q, k, v, q_s, sums, d.layout, d.kept),
            kernel=d.kernel,
            choose=lambda kernel: kernel.choose_in_tree(q_s, keys, d.layout, d.kept),
        )

    return forward


def source2token(d: Document) -> Callable[[], Tensor]:
    k, v, query = d.random(d.words), d.random(d.words), d.random(1)

    def forward() -> Tensor:
        weights = d.layout.tokens.softmax((k * query).sum(-1) / math.sqrt(d.head_dim))
        return d.layout.tokens.sum(weights.unsqueeze(-1) * v)

    return forward


CORES: Dict[str, Callable[[Document], Callable[[], Tensor]]] = {
    f.__name__: f for f in (sentence, matrix, flash, encodings, conditional, tree, source2token)
}


def module(name: str, d: Document) -> Optional[Callable[[], Tensor]]:
    """Returns the forward pass of a whole layer; None where there is none apart (matrices)."""
    width, layout = d.heads * d.head_dim, d.layout
    if name == "matrix":
        return None
    if name == "flash":  # the whole document as one sentence
        one = np.ones(1, dtype=np.int64)
        layout = DocumentLayout.of(one * d.words, one, one * 0, one * 0)
    if name in ("sentence", "flash"):
        layer: nn.Module = SentenceSelfAttention(width, d.heads)
    elif name == "source2token":
        layer = SENTENCE_ENCODERS[name](width, d.heads)
        layout = layout.tokens
    else:
        mechanism = CONTEXT_MECHANISMS["sentence-encodings" if name == "encodings" else name]
        selecting = {} if name == "encodings" else {"context_top_t": TOP_T, "context_kernel": d.kernel}
        layer = mechanism(LayerConfig(width, d.heads, d.head_dim), mechanism.Options(**selecting))
    x = torch.randn(d.words, width, requires_grad=True)
    return lambda: layer(x, layout)


def step(name: str, d: Document, whole: bool) -> Optional[Callable[[], None]]:
    """Returns a forward and backward pass of a core or (``whole``) a layer."""
    forward = module(name, d) if whole else CORES[name](d)
    if forward is None:
        return None

    def both() -> None:
        out = forward()
        out.backward(torch.ones_like(out))

    return both
