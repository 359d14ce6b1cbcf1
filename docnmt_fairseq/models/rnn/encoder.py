"""Encoder of ``document_rnn``: bidirectional layers over packed sentences."""

from functools import partial
from typing import Any, Iterable, Iterator, Optional, Sequence

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.ca_layers.embeddings import ChiEmbedding
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, ExtraSourceInput
from docnmt_fairseq.models.base import DocumentEncoder
from docnmt_fairseq.models.encoder_outputs import EncoderOutputs
from docnmt_fairseq.models.extra_sources import ExtraSources, SourceEncoder
from docnmt_fairseq.models.rnn.config import DocumentRNNOptions
from docnmt_fairseq.recurrent.layers import BidirectionalLayers


class SeparateRecurrentEncoder(SourceEncoder):
    """Separate bidirectional layers for one extra source, of the main encoder's kind and widths.

    Args:
        cfg: options of the model.
        embed_tokens: embeddings; None: the main encoder's.
    """

    def __init__(self, cfg: DocumentRNNOptions, embed_tokens: Optional[nn.Embedding]):
        super().__init__()
        self.embed_tokens = embed_tokens
        self.dropout = nn.Dropout(cfg.dropout)
        count = cfg.extra_encoder_layers or cfg.encoder_layers
        sizes = (cfg.encoder_embed_dim, cfg.encoder_hidden_size, count, cfg.dropout)
        self.layers = BidirectionalLayers(cfg.encoder_cell, *sizes)

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        return iter(self.layers.plans())

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: DocumentEncoder) -> Tensor:
        assert layout is not None
        return self.layers(self.dropout((self.embed_tokens or main.embed_tokens)(values)), layout)


class RecurrentEncoder(DocumentEncoder, FairseqEncoder):
    """Bidirectional recurrent layers over embedded tokens.

    Args:
        cfg: options of the model.
        dictionary: source dictionary.
        embed: source embeddings.
        inputs: extra sources.
    """

    def __init__(
        self,
        cfg: DocumentRNNOptions,
        dictionary: Dictionary,
        embed: nn.Embedding,
        inputs: Sequence[ExtraSourceInput] = (),
    ):
        super().__init__(dictionary)
        self.document_cfg = cfg
        self.embed_tokens = embed
        self.padding_idx = dictionary.pad()
        self.max_source_positions = cfg.max_source_positions
        self.dropout = nn.Dropout(cfg.dropout)
        sizes = (cfg.encoder_embed_dim, cfg.encoder_hidden_size, cfg.encoder_layers, cfg.dropout)
        self.layers = BidirectionalLayers(cfg.encoder_cell, *sizes)
        self.output_dim = self.layers.output_dim
        symbols, padding = len(dictionary), self.padding_idx
        self.for_chi = ChiEmbedding(symbols, cfg.chi_embed_dim, padding) if cfg.chi_embed_dim else None
        make_separate = partial(SeparateRecurrentEncoder, cfg)
        self.extra_sources = ExtraSources(cfg, inputs, dictionary, self.output_dim, make_separate)

    def plans(self) -> Iterator[PlanKey[Any]]:
        yield from self.layers.plans()
        yield from self.extra_sources.plans(self.layers.plans())

    def encode_tokens(
        self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None
    ) -> Tensor:
        """Packed states [N, d] of packed tokens [N]; the embeddings for χ, if separate, are appended."""
        states = self.layers(self.dropout((embed_tokens or self.embed_tokens)(tokens)), layout)
        return states if self.for_chi is None else torch.cat([states, self.for_chi(tokens).to(states.dtype)], dim=-1)

    def encode(
        self, src_tokens: Tensor, layout: DocumentLayout, extra_sources: Sequence[Optional[ExtraSourceBatch]] = ()
    ) -> EncoderOutputs:
        """States of all sources; without extra sources, context-only sentences are skipped."""
        if not self.extra_sources.specs and layout.decoded is not None:
            layout = layout.without_context()
        return super().encode(src_tokens, layout, extra_sources)
