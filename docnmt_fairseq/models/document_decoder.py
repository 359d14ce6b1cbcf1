"""fairseq's Transformer decoder; in training and validation it computes on packed target tokens only.

Its upper layers may look at the whole source document. Stock code hands the mask of the source's padding through to
the layers untouched: what a layer needs to know beside it travels in its place, as a :class:`SourceMask`.
"""

import itertools
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple, Union

from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from fairseq.modules import MultiheadAttention, transformer_layer
from torch import Tensor, nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layout import AttentionPlan, DocumentLayout
from docnmt_fairseq.models.combination_config import combination_name, source_names
from docnmt_fairseq.models.combined_attention import CombinedAttention, PackedSources, PaddedSources
from docnmt_fairseq.models.config import DocumentTransformerConfig
from docnmt_fairseq.models.context_config import decoder_context_config, decoder_context_layers
from docnmt_fairseq.models.feed_forward import choose_feed_forward
from docnmt_fairseq.models.target_context import TargetContext
from docnmt_fairseq.modules.attention_combination.packed import CombinationPlan
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, DecoderContextMechanism
from docnmt_fairseq.modules.ragged_attention import ragged_attention
from docnmt_fairseq.modules.source_states import SourceStates


@dataclass(frozen=True)
class SourceMask:
    """Which source words and which source sentences target words see.

    Attributes:
        words: padding [S, m], True at padding, or a plan; of several sources what they see of all.
        sentences: see :meth:`DecoderContextMechanism.attend`; None without context.
        memories: what each layer with context attends to; None where layers are given it one by one.
    """

    words: Union[AttentionPlan, Tensor, CombinationPlan, PaddedSources]
    sentences: Union[AttentionPlan, Tensor, None]
    memories: Optional[List[Tensor]] = None


class PackedMultiheadAttention(MultiheadAttention):
    """fairseq's attention that also takes packed states: the mask is then an :class:`AttentionPlan`.

    Stock decoder layers hand their masks through untouched, so the plan reaches this place without a copied forward.
    """

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: object = None, **kwargs) -> Tuple:
        """Returns fairseq's (output, weights); with a plan packed [N, 1, d] states and no weights.

        Without, ``key`` [m, S, d] may stand for the queries [m_t, S · b, d] of b hypotheses each.
        """
        if not isinstance(key_padding_mask, AttentionPlan):
            self.beam_size = query.size(1) // key.size(1)  # a sentence's hypotheses share its keys
            return super().forward(query, key, value, key_padding_mask, **kwargs)
        inputs = ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        q, k, v = (proj(x.squeeze(1)).unflatten(-1, (self.num_heads, -1)) for proj, x in inputs)
        dropout = self.dropout_module.p if self.training else 0.0
        return self.out_proj(ragged_attention(q, k, v, key_padding_mask, dropout).flatten(1)).unsqueeze(1), None


class DocumentDecoderLayer(transformer_layer.TransformerDecoderLayerBase):
    """A stock decoder layer whose attentions also take packed states, and perhaps a context sub-layer behind it.

    Args:
        host: fairseq's nested configuration.
        context: the mechanism, None: a sentence-level layer.
        number: of the layer among those with context.
    """

    def __init__(self, host: TransformerConfig, context: Optional[DecoderContextMechanism] = None, number: int = 0):
        super().__init__(host)
        choose_feed_forward(self, host.document, "decoder")
        self.context = context
        self.number = number
        if context is not None:
            self.context_layer_norm = nn.LayerNorm(self.embed_dim)

    def forward(
        self,
        x: Tensor,
        encoder_out: Optional[Tensor] = None,
        encoder_padding_mask: Union[SourceMask, AttentionPlan, CombinationPlan, PaddedSources, Tensor, None] = None,
        *args,
        memory: Optional[Tensor] = None,
        **kwargs,
    ) -> Tuple:
        """Returns what the stock layer returns, its states [m_t, S, d] or packed [N_t, 1, d] with context added.

        Args:
            x, encoder_out, args, kwargs: as the stock layer takes them; further sources' packed states [M_k, d_k] are
                ``further_0``, ``further_1``, … among the keywords, tensors for the same reason as the memory.
            encoder_padding_mask: with context a :class:`SourceMask`.
            memory: what the context attends to if the mask does not hold it. (A tensor among the arguments, not
                inside the mask, so that activation checkpointing brings its gradient back.)
        """
        mask = encoder_padding_mask
        words = mask.words if isinstance(mask, SourceMask) else mask
        if isinstance(words, CombinationPlan):
            further = [name for name in kwargs if name.startswith("further_")]
            words = PackedSources(words, [kwargs.pop(name) for name in further])
        x, attention, state = super().forward(x, encoder_out, words, *args, **kwargs)
        if self.context is not None:
            memory = mask.memories[self.number] if memory is None else memory
            y = self.context.attend(self.context_layer_norm(x).flatten(0, 1), memory, mask.sentences)
            # Pre-norm also in a post-norm model: only so can the sub-layer begin as the identity.
            x = x + self.dropout_module(y.view_as(x))
        return x, attention, state

    def build_self_attention(self, embed_dim: int, cfg: TransformerConfig, **kwargs) -> nn.Module:
        """Returns self-attention for padded and packed states."""
        heads, dropout = cfg.decoder.attention_heads, cfg.attention_dropout
        return PackedMultiheadAttention(embed_dim, heads, dropout=dropout, self_attention=True)

    def build_encoder_attention(self, embed_dim: int, cfg: TransformerConfig) -> nn.Module:
        """Returns encoder-decoder attention for padded and packed states, over several sources if there are."""
        if combination_name(cfg.document) is not None:
            return CombinedAttention(cfg.document)
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

    def __init__(self, host: TransformerConfig, cfg: DocumentTransformerConfig, dictionary: object, embed: nn.Module):
        self.document_cfg = cfg
        self.layer_numbers = itertools.count()
        super().__init__(host, dictionary, embed)
        self.target_context = None if cfg.target_context_attention == "none" else TargetContext(cfg)

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False) -> nn.Module:
        """Returns the next layer, wrapped for activation checkpointing as fairseq does it."""
        document, context, number = self.document_cfg, None, next(self.layer_numbers)
        with_context = decoder_context_layers(document)
        if number in with_context:
            context = CONTEXT_MECHANISMS[document.decoder_context_attention](decoder_context_config(document))
        layer = DocumentDecoderLayer(cfg, context, with_context.index(number) if context else 0)
        if isinstance(layer.encoder_attn, CombinedAttention):
            layer.encoder_attn.number = number
        if cfg.checkpoint_activations:
            from fairseq.modules.checkpoint_activations import checkpoint_wrapper

            layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
        return layer

    def memories(self, states: Tensor, layout: DocumentLayout) -> List[Tensor]:
        """Returns what each layer with context attends to, [R, w] each.

        Args:
            states: [N, d] packed final states of the encoder, of all rows.
            layout: the batch.
        """
        contexts = (self.layers[number].context for number in range(self.num_layers))  # iterating would drop layers
        return [context.remember(states, layout) for context in contexts if context is not None]

    def source_memories(
        self, states: Tensor, layout: DocumentLayout, further: Sequence[SourceStates]
    ) -> Dict[str, List[Tensor]]:
        """Returns what a search needs of several sources, for the encoder's output; nothing if there is one only.

        These are ``source_memories``, a [S, n_k, w_k] of every source for the first layer, for the second, …; and
        their ``source_paddings``, a [S, n_k] of every source.

        Args:
            states: [N, d] packed final states of the encoder, of all rows.
            layout: the batch.
            further: the states of the further sources.
        """
        attentions = [self.layers[number].encoder_attn for number in range(self.num_layers)]
        if not isinstance(attentions[0], CombinedAttention):
            return {}
        sources = self.sources(states, layout, further)
        memories = [memory for attention in attentions for memory in attention.memories(sources)]
        return {"source_memories": memories, "source_paddings": [source.padded()[1] for source in sources]}

    def sources(self, states: Tensor, layout: DocumentLayout, further: Sequence[SourceStates]) -> List[SourceStates]:
        """Returns all sources, the main one first; :class:`InputError` if they are not those of the model."""
        names = source_names(self.document_cfg)[1:]
        if len(further) != len(names):
            raise InputError(f"--further-sources {','.join(names)}: the batch has {len(further)} of {len(names)}")
        return [SourceStates(layout.keep_decoded(states), layout.decoded_words.lengths), *further]

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[Dict[str, List[Tensor]]] = None,
        incremental_state: Optional[Dict[str, Dict[str, Optional[Tensor]]]] = None,
        *args,
        **kwargs,
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns the stock decoder's features [S, m_t, d] and extras, from an encoder output that brings context.

        With ``previous_targets`` in it, the memory and the padding of the sentences before, words see these, too.
        """
        options = (incremental_state, *args)
        features, extra = self.features_without_previous_targets(prev_output_tokens, encoder_out, *options, **kwargs)
        if encoder_out is not None and "previous_targets" in encoder_out:
            features = self.target_context.look_back(features, *encoder_out["previous_targets"])
        return features, extra

    def features_without_previous_targets(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[Dict[str, List[Tensor]]] = None,
        incremental_state: Optional[Dict[str, Dict[str, Optional[Tensor]]]] = None,
        *args,
        **kwargs,
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns the features that a sentence has whatever was said before it in the target language."""
        sources = None if encoder_out is None else PaddedSources.of(encoder_out)
        if encoder_out is not None and (sources is not None or "context_memories" in encoder_out):
            words, sight = encoder_out["encoder_padding_mask"][0] if sources is None else sources, None
            if "context_memories" in encoder_out:
                (rows,), (sentences,) = encoder_out["context_documents"], encoder_out["context_sentence_documents"]
                steps = 1 if incremental_state is not None else prev_output_tokens.size(1)
                sight = (rows[:, None] == sentences).repeat(steps, 1)  # [m_t · S, R], as layers have their words
            mask = SourceMask(words, sight, encoder_out.get("context_memories"))
            encoder_out = {**encoder_out, "encoder_padding_mask": [mask]}
        return super().extract_features(prev_output_tokens, encoder_out, incremental_state, *args, **kwargs)

    def remember_targets(self, prev_output_tokens: Tensor, encoder_out: Dict[str, List[Tensor]]) -> Tensor:
        """Returns [S, m_t, w], what later sentences look at, of right-padded target sentences [S, m_t]."""
        features, _ = self.features_without_previous_targets(prev_output_tokens, encoder_out)
        return self.target_context.mechanism.remember(features)

    def decode_packed(
        self,
        prev_output_tokens: Tensor,
        encoder_states: Tensor,
        layout: DocumentLayout,
        features_only: bool = False,
        further: Sequence[SourceStates] = (),
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns packed logits (or features) [target tokens, ...] under teacher forcing, and extras.

        Args:
            prev_output_tokens: right-padded [S, m_t].
            encoder_states: [N, d] packed states of all rows.
            layout: the batch; ``layout.targets`` must be there.
            features_only: leave out the output projection.
            further: the states of further sources for the decoded rows, where the model has such.
        """
        x = self.embed_scale * self.embed_tokens(layout.targets.pack(prev_output_tokens))
        if self.embed_positions is not None:
            x = x + layout.targets.pack(self.embed_positions(prev_output_tokens))
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = self.dropout_module(x).unsqueeze(1)  # [N_t, 1, d]
        sources = self.sources(encoder_states, layout, further)
        source, words, states = sources[0].states.unsqueeze(1), layout.targets_to_source, {}
        if combination_name(self.document_cfg) is not None:
            words = CombinationPlan.make(layout.targets, sources)
            states = {f"further_{number}": one.states for number, one in enumerate(further)}
        for layer in self.layers:
            mask, memory = words, None
            if layer.context is not None:
                mask = SourceMask(words, layout.targets_to_sentences)
                memory = layer.context.remember(encoder_states, layout)
            x, *_ = layer(x, source, mask, self_attn_padding_mask=layout.within_targets, memory=memory, **states)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        x = x.squeeze(1)
        if self.target_context is not None:
            x = self.target_context(x, layout.of_targets)
        return (x if features_only else self.output_layer(x)), {"attn": [None], "inner_states": []}
