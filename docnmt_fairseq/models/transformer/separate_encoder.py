"""A Transformer encoder of its own for one extra source, sentence by sentence."""

from typing import Any, Callable, Iterable, Iterator, Optional

from torch import Tensor, nn

from docnmt_fairseq.batch.attention_plans import WithinSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.layers.auxiliary_losses import recomputed
from docnmt_fairseq.layers.positions import StructuralPositions
from docnmt_fairseq.models.extra_sources import MainEncoder, SourceEncoder
from docnmt_fairseq.models.transformer.config import DocumentTransformerOptions
from docnmt_fairseq.models.transformer.positions import word_positions


class SeparateEncoder(SourceEncoder):
    """Layers of the main encoder's kind and width, without context.

    Args:
        cfg: the model's options.
        embed_tokens: embeddings of its own, None: the main encoder's.
        padding_idx: number of the padding.
        make_layer: makes a sentence-level encoder layer.
    """

    def __init__(
        self,
        cfg: DocumentTransformerOptions,
        embed_tokens: Optional[nn.Embedding],
        padding_idx: int,
        make_layer: Callable[[], nn.Module],
    ):
        super().__init__()
        width = cfg.encoder_embed_dim
        self.recompute = cfg.checkpoint_activations
        self.embed_tokens = embed_tokens
        self.embed_scale = 1.0 if cfg.no_scale_embedding else width**0.5
        self.embed_positions = StructuralPositions(width, word_positions(cfg, padding_idx))
        self.layernorm_embedding = nn.LayerNorm(width) if cfg.layernorm_embedding else None
        self.dropout = nn.Dropout(cfg.dropout)
        layers = cfg.extra_encoder_layers or cfg.encoder_layers
        self.layers = nn.ModuleList(make_layer() for _ in range(layers))
        self.layer_norm = nn.LayerNorm(width) if cfg.encoder_normalize_before else None

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """See :class:`SourceEncoder`."""
        yield WithinSentences()

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """See :class:`SourceEncoder`."""
        assert layout is not None
        embed_tokens = main.embed_tokens if self.embed_tokens is None else self.embed_tokens
        x = self.embed_scale * embed_tokens(values)
        x = x + self.embed_positions(layout).to(x.dtype)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = embeddings = self.dropout(x)
        for layer in self.layers:
            inputs = (x, layout, embeddings)
            x = recomputed(layer, *inputs) if self.recompute and self.training else layer(*inputs)
        return x if self.layer_norm is None else self.layer_norm(x)
