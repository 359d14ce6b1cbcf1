"""``document_transformer``: fairseq's Transformer with context between the sentences of a document."""

import logging
from collections import defaultdict
from typing import Dict, Optional, Sequence, Set, Tuple

import torch
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from torch import Tensor, nn

from docnmt_fairseq import compat
from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.alternating import alternate_updates
from docnmt_fairseq.models.combination_config import combination_name
from docnmt_fairseq.models.combined_attention import CombinedAttention
from docnmt_fairseq.models.config import DocumentTransformerConfig, check
from docnmt_fairseq.models.document_decoder import DocumentTransformerDecoder
from docnmt_fairseq.models.document_encoder import DocumentTransformerEncoder
from docnmt_fairseq.models.document_model import DocumentModel
from docnmt_fairseq.models.feed_forward import context_aware_keys, rename_stock_keys
from docnmt_fairseq.models.further_config import further_specs
from docnmt_fairseq.models.further_sources import FurtherSources
from docnmt_fairseq.modules.context import ContextMechanism
from docnmt_fairseq.modules.gate import ContextGate
from docnmt_fairseq.modules.positions import StructuralPositions

logger = logging.getLogger(__name__)


@register_model("document_transformer", dataclass=DocumentTransformerConfig)
class DocumentTransformer(DocumentModel, TransformerModelBase):
    """Sentences are encoded once, in their documents; the decoder sees ordinary sentences."""

    options = DocumentTransformerConfig

    def __init__(
        self, cfg: TransformerConfig, encoder: DocumentTransformerEncoder, decoder: DocumentTransformerDecoder
    ):
        super().__init__(cfg, encoder, decoder)
        encoder.memories, encoder.source_memories = decoder.memories, decoder.source_memories

    @property
    def gives_alignment(self) -> bool:
        """Whether its decoder gives the weights of source words: combinations of attention keep them to themselves."""
        return combination_name(self.encoder.document_cfg) is None

    @classmethod
    def build_model(cls, cfg: DocumentTransformerConfig, task: object) -> "DocumentTransformer":
        """Returns the model; :class:`InputError` if options contradict each other."""
        cfg = cls.complete(cfg)
        check(cfg)
        host = TransformerConfig.from_namespace(cfg)
        host.decoder.input_dim = host.decoder.output_dim = host.decoder.embed_dim
        host.document = cfg
        specs = further_specs(cfg)
        host.further = task.further_inputs(specs, cfg.further_feature_dims) if specs else []
        model = super().build_model(host, task)
        if cfg.freeze_sentence_model:
            model.freeze_sentence_model()
        alternate_updates(model, cfg)
        return model

    @classmethod
    def build_encoder(cls, cfg: TransformerConfig, src_dict: object, embed_tokens: nn.Module) -> nn.Module:
        """Returns the document encoder."""
        return DocumentTransformerEncoder(cfg, cfg.document, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg: TransformerConfig, tgt_dict: object, embed_tokens: nn.Module) -> nn.Module:
        """Returns the decoder."""
        return DocumentTransformerDecoder(cfg, cfg.document, tgt_dict, embed_tokens)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        layout: Optional[DocumentLayout] = None,
        features_only: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
        further: Optional[Sequence] = None,
        **unused,
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns logits and extras: in training packed [target tokens, V] (see :meth:`get_targets`), else [S, m_t, V].

        Args:
            src_tokens: [S, m] decoded sentences.
            src_lengths: not needed, for fairseq's callers.
            prev_output_tokens: right-padded [S, m_t].
            layout: the batch; without it every sentence stands alone.
            features_only: states instead of logits.
            alignment_layer, alignment_heads: if attention weights are wanted; computed on padded states.
            further: see :meth:`DocumentTransformerEncoder.encode_further`.
        """
        src_tokens, layout = self.encoder.complete(src_tokens, layout)
        if alignment_layer is not None or alignment_heads is not None:
            encoder_out = self.encoder(src_tokens, layout=layout, further=further)
            options = {"alignment_layer": alignment_layer, "alignment_heads": alignment_heads}
            return self.decoder(prev_output_tokens, encoder_out=encoder_out, features_only=features_only, **options)
        layout = self.layout_for(layout, prev_output_tokens)
        states = self.encoder.encode(src_tokens, layout)
        of_further = self.encoder.encode_further(src_tokens, layout, states, further)
        output, extra = self.decoder.decode_packed(prev_output_tokens, states, layout, features_only, of_further)
        return self.output_of(output, extra, layout, prev_output_tokens.size(1))

    def freeze_sentence_model(self) -> None:
        """Leaves only that to train which a sentence-level model does not have."""
        trained = self.context_keys() - self.sentence_keys()
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name in trained)
        if self.cfg.checkpoint_activations:
            # fairseq recomputes a layer only if its input wants a gradient: else nothing in it is trained.
            for side in (self.encoder, self.decoder):
                side.embed_tokens.register_forward_hook(lambda *call: call[-1].requires_grad_(torch.is_grad_enabled()))

    def context_parts(self) -> Dict[str, Set[str]]:
        """Returns the state-dict keys of what a sentence-level model does not have, by what comes together."""
        parts: Dict[str, Set[str]] = defaultdict(set, context_aware_keys(self))
        for name, module in self.named_modules():
            if isinstance(module, (ContextMechanism, ContextGate)) or name.endswith("context_layer_norm"):
                part = f"context sub-layers in the {name.split('.')[0]}"
                part = "target context" if name.startswith("decoder.target_context") else part
                parts[part] |= {f"{name}.{key}" for key in module.state_dict()}
            if isinstance(module, FurtherSources):
                parts["further sources"] |= {f"{name}.{key}" for key in module.state_dict()}
            if isinstance(module, CombinedAttention):
                parts["attentions to all sources"] |= {f"{name}.{key}" for key in module.state_dict()}
            if isinstance(module, StructuralPositions):
                for level in ("sentence", "paragraph"):
                    keys = module.state_dict()
                    parts[f"{level} positions"] |= {f"{name}.{key}" for key in keys if key.startswith(f"{level}.")}
        return parts

    def context_keys(self) -> Set[str]:
        """Returns the state-dict keys of all context parts."""
        return set().union(*self.context_parts().values())

    def sentence_keys(self) -> Set[str]:
        """Returns the keys of a sentence-level model: also the word attention of a mechanism that replaces it."""
        replaced = (".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj.", ".self_attn.out_proj.")
        parts = self.context_parts()
        context, further = set().union(*parts.values()), parts.get("further sources", set())
        return {
            key
            for key in self.state_dict()
            if key not in context or (key not in further and any(part in key for part in replaced))
        }

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Makes a sentence-level checkpoint (fairseq's or ours) loadable: context parts keep their initialisation.

        What has some keys of a part but not all is left alone, so that loading it fails by name.
        """
        super().upgrade_state_dict_named(state_dict, name)
        positions = "encoder.embed_positions"
        state_dict.pop(f"{positions}._float_tensor", None)
        if f"{positions}.weight" in state_dict:
            state_dict[f"{positions}.word.weight"] = state_dict.pop(f"{positions}.weight")
        compat.drop_fast_path_weights(state_dict)
        rename_stock_keys(self, state_dict)
        own, shared = self.state_dict(), self.sentence_keys()
        for part, keys in self.context_parts().items():
            added = keys - shared
            if added and not added & state_dict.keys():
                logger.info(f"the checkpoint has no {part}: they start from their initialisation")
                state_dict.update({key: own[key] for key in added})
        for module_name, module in self.named_modules():
            if isinstance(module, CombinedAttention):
                module.begin_as_plain_attention(state_dict, module_name)
