"""A Transformer encoder of its own for one further source, sentence by sentence."""

from typing import Callable, Optional

from fairseq.models.transformer import TransformerConfig
from torch import Tensor, nn

from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.config import DocumentTransformerConfig
from docnmt_fairseq.models.further_sources import MainEncoder, Reader
from docnmt_fairseq.modules.positions import StructuralPositions


class SeparateReader(Reader):
    """Layers of the main encoder's kind and width, without context.

    Args:
        host: fairseq's nested configuration.
        cfg: the model's options.
        embed_tokens: embeddings of its own, None: the main encoder's.
        padding_idx: number of the padding.
        make_layer: returns a sentence-level encoder layer.
    """

    def __init__(
        self,
        host: TransformerConfig,
        cfg: DocumentTransformerConfig,
        embed_tokens: Optional[nn.Embedding],
        padding_idx: int,
        make_layer: Callable[[], nn.Module],
    ):
        super().__init__()
        width = host.encoder.embed_dim
        self.embed_tokens = embed_tokens
        self.embed_scale = 1.0 if host.no_scale_embedding else width**0.5
        self.embed_positions = StructuralPositions(
            width, str(cfg.word_positions), max_words=cfg.max_source_positions, word_offset=padding_idx + 1
        )
        self.layernorm_embedding = nn.LayerNorm(width) if host.layernorm_embedding else None
        self.dropout = nn.Dropout(host.dropout)
        layers = cfg.further_encoder_layers or cfg.encoder_layers
        self.layers = nn.ModuleList(make_layer() for _ in range(layers))
        self.layer_norm = nn.LayerNorm(width) if host.encoder.normalize_before else None

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """Returns [M, d]; see :class:`Reader`."""
        embed_tokens = main.embed_tokens if self.embed_tokens is None else self.embed_tokens
        x = self.embed_scale * embed_tokens(values)
        x = x + self.embed_positions(layout).to(x.dtype)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = embeddings = self.dropout(x)
        for layer in self.layers:
            x = layer(x, layout, embeddings)
        return x if self.layer_norm is None else self.layer_norm(x)
