"""The Transformer encoder over packed documents: fairseq's layers' parameters, computed on real tokens only."""

import itertools
from functools import partial
from typing import Callable, Dict, List, Optional, Sequence

import torch
from fairseq.models.transformer import TransformerConfig, TransformerEncoderBase
from fairseq.modules import transformer_layer
from torch import Tensor, nn

from docnmt_fairseq import compat
from docnmt_fairseq.data.line_source import LineSource
from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.config import DocumentTransformerConfig
from docnmt_fairseq.models.context_config import context_config, context_layers, context_placement
from docnmt_fairseq.models.encoder_rows import completed, sentences_of_hypotheses
from docnmt_fairseq.models.feed_forward import choose_feed_forward
from docnmt_fairseq.models.further_sources import FurtherSources, reader_of
from docnmt_fairseq.models.sentence_reader import SeparateReader
from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, GATED, ContextMechanism
from docnmt_fairseq.modules.gate import ContextGate
from docnmt_fairseq.modules.positions import StructuralPositions
from docnmt_fairseq.modules.self_attention import SentenceSelfAttention
from docnmt_fairseq.modules.source_states import SourceStates


class DocumentEncoderLayer(transformer_layer.TransformerEncoderLayerBase):
    """A stock encoder layer on packed states, with a place for a context mechanism.

    Args:
        host: fairseq's nested configuration.
        context: the mechanism, None: a sentence-level layer.
        placement: where it goes, of ``PLACEMENTS``.
        zero_init: whether a gate begins as the identity.
    """

    def __init__(
        self,
        host: TransformerConfig,
        context: Optional[ContextMechanism] = None,
        placement: str = "block",
        zero_init: bool = True,
    ):
        super().__init__(host)
        compat.remove_fast_path(self)
        choose_feed_forward(self, host.document, "encoder")
        self.placement = None if context is None else placement
        if self.placement == "replace":
            self.self_attn = context
        elif context is not None:
            self.context = context
        if self.placement in GATED:
            self.context_gate = ContextGate(self.embed_dim, zero_init)
        # What enters the attention sub-layer is normalised already, and in a post-norm model every layer's states are.
        after_attention = self.placement in ("gated-feed-forward", "gated-output") and self.normalize_before
        if self.placement == "block" or after_attention:
            self.context_layer_norm = nn.LayerNorm(self.embed_dim)

    def build_self_attention(self, embed_dim: int, cfg: TransformerConfig) -> nn.Module:
        """Returns the attention over packed sentences instead of fairseq's padded one."""
        return SentenceSelfAttention(embed_dim, cfg.encoder.attention_heads, cfg.attention_dropout)

    def _load_from_state_dict(self, *args) -> None:
        nn.Module._load_from_state_dict(self, *args)  # fairseq 0.12.2's own would ask for its fast path's weights

    def forward(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Returns [N, d].

        Args:
            x: packed states [N, d].
            layout: the batch.
            embeddings: [N, d] the words as they entered the encoder.
        """
        x = self.sub_layer(x, self.self_attn_layer_norm, lambda y: self.attention(y, layout, embeddings))
        if self.placement == "block":
            # Pre-norm also in a post-norm model: only so can the block begin as the identity.
            x = x + self.dropout_module(self.enrich(self.context_layer_norm(x), layout, embeddings))
        y = self.sub_layer(x, self.final_layer_norm, self.feed_forward)
        if self.placement in ("gated-feed-forward", "gated-output"):
            queries = y if self.placement == "gated-output" else x
            queries = self.context_layer_norm(queries) if self.normalize_before else queries
            y = self.gate(y, queries, layout, embeddings)
        return y

    def enrich(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Returns what words x [N, d] get from their context."""
        return self.context(x, layout, embeddings) if self.context.reads_embeddings else self.context(x, layout)

    def gate(self, source: Tensor, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Returns what words are by themselves, ``source`` [N, d], weighed against what words x get from context."""
        return self.context_gate(source, self.enrich(x, layout, embeddings), self.context.reached(layout))

    def sub_layer(self, x: Tensor, norm: nn.Module, function: nn.Module) -> Tensor:
        """Returns x + dropout(function(x)), normalised before or after as the model has it."""
        y = self.dropout_module(function(norm(x) if self.normalize_before else x))
        y = self.residual_connection(y, x)
        return y if self.normalize_before else norm(y)

    def attention(self, x: Tensor, layout: DocumentLayout, embeddings: Tensor) -> Tensor:
        """Returns self-attention, with the context that has its place here."""
        y = self.self_attn(x, layout)
        if self.placement == "heads":
            return y + self.enrich(x, layout, embeddings)
        return self.gate(y, x, layout, embeddings) if self.placement == "gated-attention" else y

    def feed_forward(self, x: Tensor) -> Tensor:
        """Returns the position-wise feed-forward."""
        return self.fc2(self.activation_dropout_module(self.activation_fn(self.fc1(x))))


class DocumentTransformerEncoder(TransformerEncoderBase):
    """Encodes the sentences of whole documents; its public output is fairseq's ordinary one, a sentence a row."""

    def __init__(self, host: TransformerConfig, cfg: DocumentTransformerConfig, dictionary: object, embed: nn.Module):
        self.document_cfg = cfg
        self.layer_numbers = itertools.count()
        # The decoder's methods of these names, put here by the model: a search sees the encoder's output only.
        self.memories: Callable[[Tensor, DocumentLayout], List[Tensor]]
        self.source_memories: Callable[[Tensor, DocumentLayout, List[SourceStates]], Dict[str, List[Tensor]]]
        super().__init__(host, dictionary, embed)
        self.embed_positions = StructuralPositions(
            host.encoder.embed_dim,
            word=str(cfg.word_positions),
            sentence=str(cfg.sentence_positions),
            paragraph=str(cfg.paragraph_positions),
            word_scope=str(cfg.word_positions_from),
            max_words=cfg.max_source_positions,
            max_sentences=cfg.max_sentence_positions,
            max_paragraphs=cfg.max_paragraph_positions,
            word_offset=self.padding_idx + 1,
        )
        sizes = (host.encoder.embed_dim, host.encoder.embed_dim)
        make = partial(reader_of, cfg, dictionary, sizes, self.build_separate_reader)
        self.further = FurtherSources(host.further, make, cfg.seed) if host.further else None

    def build_separate_reader(self, embed_tokens: Optional[nn.Embedding]) -> SeparateReader:
        """Returns the encoder of a further source; embeddings are None where they are this encoder's."""
        host = self.cfg

        def make_layer() -> nn.Module:
            return wrapped(DocumentEncoderLayer(host), host)

        return SeparateReader(host, self.document_cfg, embed_tokens, self.padding_idx, make_layer)

    def build_encoder_layer(self, host: TransformerConfig) -> nn.Module:
        """Returns the next layer, wrapped for activation checkpointing and sharding as fairseq does it."""
        cfg, context = self.document_cfg, None
        if next(self.layer_numbers) in context_layers(cfg):
            context = CONTEXT_MECHANISMS[cfg.context_attention](context_config(cfg))
        return wrapped(DocumentEncoderLayer(host, context, context_placement(cfg), cfg.context_init == "zero"), host)

    def encode(self, src_tokens: Tensor, layout: DocumentLayout) -> Tensor:
        """Returns packed states [N, d] of all rows of the layout.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
        """
        return self.read(layout.pack_tokens(src_tokens), layout)

    def read(self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None) -> Tensor:
        """Returns packed states [N, d] of all rows of a layout.

        Args:
            tokens: [N] packed words.
            layout: of them.
            embed_tokens: embeddings, None: the encoder's.
        """
        x = self.embed_scale * (embed_tokens or self.embed_tokens)(tokens)
        x = x + self.embed_positions(layout).to(x.dtype)
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x = embeddings = self.dropout_module(x)
        for layer in self.layers:
            x = layer(x, layout, embeddings)
        return x if self.layer_norm is None else self.layer_norm(x)

    def encode_further(
        self,
        src_tokens: Tensor,
        layout: DocumentLayout,
        states: Tensor,
        further: Optional[Sequence[Optional[LineSource]]] = None,
    ) -> List[SourceStates]:
        """Returns the states of further sources for the decoded rows, none where the model has no such source.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
            states: [N, d] of :meth:`encode`.
            further: the batch's data of every source, None where the document holds it.
        """
        if self.further is None:
            return []
        return self.further.read(layout.pack_tokens(src_tokens), layout, states, further, self)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        layout: Optional[DocumentLayout] = None,
        return_all_hiddens: bool = False,
        further: Optional[Sequence] = None,
    ) -> Dict[str, List[Tensor]]:
        """Returns fairseq's encoder output of the decoded rows: ``encoder_out`` [m, S, d], padding mask [S, m], ….

        For a decoder with context there are also ``context_memories``, a [R, w] for each of its layers; the documents
        of their sentences, ``context_sentence_documents`` [R]; and of the decoded rows, ``context_documents`` [S]. For
        one that attends to several sources see :meth:`DocumentTransformerDecoder.source_memories`.

        Args:
            src_tokens: [S, m], padded on either side; without a layout every sentence stands alone.
            src_lengths: not needed, for fairseq's callers.
            layout: the batch.
            return_all_hiddens: not supported, for fairseq's callers.
            further: see :meth:`encode_further`.
        """
        src_tokens, layout = self.complete(src_tokens, layout)
        states = self.encode(src_tokens, layout)
        rows = layout.decoded_words
        output = {
            "encoder_out": [rows.pad(layout.keep_decoded(states)).transpose(0, 1)],
            "encoder_padding_mask": [rows.padding_mask()],
            "encoder_embedding": [],
            "encoder_states": [],
            "fc_results": [],
            "src_tokens": [],
            "src_lengths": [rows.lengths_tensor.to(torch.int32).unsqueeze(1)],
        }
        output.update(self.source_memories(states, layout, self.encode_further(src_tokens, layout, states, further)))
        memories = self.memories(states, layout)
        if memories:
            output["context_memories"] = memories
            output["context_sentence_documents"] = [layout.sentences.item_row]
            output["context_documents"] = [torch.as_tensor(layout.decoded_document, device=layout.device)]
        return output

    def forward_torchscript(self, net_input: Dict[str, object]) -> Dict[str, List[Tensor]]:
        """Returns the encoder's output as a search asks for it; one that goes in rounds has it already."""
        encoded = net_input.get("encoded")
        return super().forward_torchscript(net_input) if encoded is None else encoded[self]

    def reorder_encoder_out(self, encoder_out: Dict[str, List[Tensor]], new_order: Tensor) -> Dict[str, List[Tensor]]:
        """Returns the output for the rows ``new_order`` [B]; the memories stay, rows only know their document.

        Hypotheses of one sentence share its columns of ``encoder_out`` and of the mask (which sentence they are of is
        in ``row_sentence`` [B]): attention projects and keeps them once, and nothing moves unless a sentence finishes.
        """
        columns = encoder_out["encoder_padding_mask"][0].size(0)
        everyone = torch.arange(columns, device=new_order.device)
        rows = encoder_out.get("row_sentence", [everyone])[0]
        kept, row_sentence = sentences_of_hypotheses(rows, new_order)
        moved = not torch.equal(kept, everyone)
        output = super().reorder_encoder_out(encoder_out, kept) if moved else dict(encoder_out)
        output["row_sentence"] = [row_sentence]
        if moved and "previous_targets" in encoder_out:
            output["previous_targets"] = [of_row.index_select(0, kept) for of_row in encoder_out["previous_targets"]]
        for name in ("source_memories", "source_paddings"):
            if moved and name in encoder_out:
                output[name] = [of_source.index_select(0, kept) for of_source in encoder_out[name]]
        if "context_memories" in encoder_out:
            output["context_memories"] = encoder_out["context_memories"]
            output["context_sentence_documents"] = encoder_out["context_sentence_documents"]
            output["context_documents"] = [encoder_out["context_documents"][0].index_select(0, new_order)]
        return output

    def complete(self, src_tokens: Tensor, layout: Optional[DocumentLayout]) -> "tuple[Tensor, DocumentLayout]":
        """Returns right-padded tokens and a layout on their device, whatever the task gives."""
        return completed(src_tokens, layout, self.padding_idx)

    def max_positions(self) -> int:
        """Returns the longest sentence that the encoder takes, in tokens."""
        return self.max_source_positions


def wrapped(layer: nn.Module, host: TransformerConfig) -> nn.Module:
    """Returns the layer, if the host says so with its activations recomputed in the backward pass."""
    if not host.checkpoint_activations:
        return layer
    from fairseq.modules.checkpoint_activations import checkpoint_wrapper

    return checkpoint_wrapper(layer, offload_to_cpu=host.offload_activations)
