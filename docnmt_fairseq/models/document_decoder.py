"""fairseq's Transformer decoder; in training and validation it computes on packed target tokens only."""

from typing import Dict, Tuple

from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.modules import MultiheadAttention, transformer_layer
from torch import Tensor, nn

from docnmt_fairseq.layout import AttentionPlan, DocumentLayout
from docnmt_fairseq.modules.ragged_attention import ragged_attention


class PackedMultiheadAttention(MultiheadAttention):
    """fairseq's attention that also takes packed states: the mask is then an :class:`AttentionPlan`.

    Stock decoder layers hand their masks through untouched, so the plan reaches this place without a copied forward.
    """

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: object = None, **kwargs) -> Tuple:
        """Returns fairseq's (output, weights); with a plan packed [N, 1, d] states and no weights."""
        if not isinstance(key_padding_mask, AttentionPlan):
            return super().forward(query, key, value, key_padding_mask, **kwargs)
        inputs = ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        q, k, v = (proj(x.squeeze(1)).unflatten(-1, (self.num_heads, -1)) for proj, x in inputs)
        dropout = self.dropout_module.p if self.training else 0.0
        return self.out_proj(ragged_attention(q, k, v, key_padding_mask, dropout).flatten(1)).unsqueeze(1), None


class DocumentDecoderLayer(transformer_layer.TransformerDecoderLayerBase):
    """A stock decoder layer whose attentions also take packed states."""

    def build_self_attention(self, embed_dim: int, cfg: TransformerConfig, **kwargs) -> nn.Module:
        """Returns self-attention for padded and packed states."""
        heads, dropout = cfg.decoder.attention_heads, cfg.attention_dropout
        return PackedMultiheadAttention(embed_dim, heads, dropout=dropout, self_attention=True)

    def build_encoder_attention(self, embed_dim: int, cfg: TransformerConfig) -> nn.Module:
        """Returns encoder-decoder attention for padded and packed states."""
        return PackedMultiheadAttention(
            embed_dim,
            cfg.decoder.attention_heads,
            kdim=cfg.encoder.embed_dim,
            vdim=cfg.encoder.embed_dim,
            dropout=cfg.attention_dropout,
            encoder_decoder_attention=True,
        )


class DocumentTransformerDecoder(TransformerDecoderBase):
    """The stock decoder, stepwise in beam search, and :meth:`decode_packed` for teacher forcing."""

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        """Returns one layer, wrapped for activation checkpointing as fairseq does it."""
        layer = DocumentDecoderLayer(cfg, no_encoder_attn)
        if cfg.checkpoint_activations:
            from fairseq.modules.checkpoint_activations import checkpoint_wrapper

            layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
        return layer

    def decode_packed(
        self, prev_output_tokens: Tensor, encoder_states: Tensor, layout: DocumentLayout, features_only: bool = False
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns packed logits (or features) [target tokens, ...] under teacher forcing, and extras.

        Args:
            prev_output_tokens: right-padded [S, m_t].
            encoder_states: packed states of the decoded rows.
            layout: the batch; ``layout.targets`` must be there.
            features_only: leave out the output projection.
        """
        x = self.embed_scale * self.embed_tokens(layout.targets.pack(prev_output_tokens))
        if self.embed_positions is not None:
            x = x + layout.targets.pack(self.embed_positions(prev_output_tokens))
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x).unsqueeze(1)  # [N_t, 1, d]
        memory = encoder_states.unsqueeze(1)
        for layer in self.layers:
            x, *_ = layer(x, memory, layout.targets_to_source, self_attn_padding_mask=layout.within_targets)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = x.squeeze(1)
        return (x if features_only else self.output_layer(x)), {"attn": [None], "inner_states": []}
