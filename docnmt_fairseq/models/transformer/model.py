"""``document_transformer``: fairseq's Transformer with context between the sentences of a document."""

import logging
from collections import defaultdict
from typing import Any, Dict, Iterator, Set

from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from docnmt_fairseq.ca_layers.embeddings import ContextAwareEmbedding
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism
from docnmt_fairseq.fairseq_patches.training import LR_SCALE
from docnmt_fairseq.layers.base import ContextGate, FeedForward
from docnmt_fairseq.layers.lora import PARAMETERS as LORA
from docnmt_fairseq.layers.positions import ADDED_LEVELS, StructuralPositions
from docnmt_fairseq.models.base import DocumentModel
from docnmt_fairseq.models.extra_sources import ExtraSources, extra_inputs
from docnmt_fairseq.models.options import alternate_updates, source_and_target_embeddings
from docnmt_fairseq.models.transformer.combined_attention import CombinedAttention
from docnmt_fairseq.models.transformer.config import (
    DocumentTransformerConfig,
    check,
    ignored_options,
    mechanisms_of,
)
from docnmt_fairseq.models.transformer.decoder import DocumentTransformerDecoder
from docnmt_fairseq.models.transformer.encoder import DocumentTransformerEncoder
from docnmt_fairseq.models.transformer.lora import add_updates
from docnmt_fairseq.options import options_of

UPDATES = "low-rank updates (LoRA)"  # name of a part that a sentence-level model does not have
# fairseq 0.12.2 saves the weights of encoder layers a second time, under these names.
FAST_PATH_WEIGHTS = {f"{part}_{kind}" for part in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")}

logger = logging.getLogger(__name__)


@register_model("document_transformer", dataclass=DocumentTransformerConfig)
class DocumentTransformer(DocumentModel, TransformerModelBase):
    """Encodes each sentence once, within its document; the decoder processes ordinary sentences."""

    options = DocumentTransformerConfig

    @classmethod
    def training_remarks(cls, cfg: Any) -> Iterator[str]:
        cfg = cls.complete(cfg)
        for mechanism in (CONTEXT_MECHANISMS[name] for name in sorted(mechanisms_of(cfg))):
            yield from mechanism.remarks(options_of(cfg, mechanism.Options))
        for flag, value in ignored_options(cfg):
            yield f"{flag} {value}: ignored; it is an option of another context mechanism"

    @classmethod
    def build_model(cls, cfg: Any, task: FairseqTask) -> "DocumentTransformer":
        """Builds the model; :class:`InputError` for invalid options."""
        cfg = cls.complete(cfg)
        check(cfg)
        fairseq_cfg = TransformerConfig.from_namespace(cfg)
        fairseq_cfg.decoder.input_dim = fairseq_cfg.decoder.output_dim = fairseq_cfg.decoder.embed_dim
        if cfg.share_all_embeddings:
            fairseq_cfg.share_decoder_input_output_embed = True
        of_source, of_target = source_and_target_embeddings(cfg, task)
        inputs = extra_inputs(cfg, task)
        encoder = DocumentTransformerEncoder(fairseq_cfg, cfg, task.source_dictionary, of_source, inputs)
        extra_rows = encoder.extra_sources.rows
        decoder = DocumentTransformerDecoder(fairseq_cfg, cfg, task.target_dictionary, of_target, extra_rows)
        model = cls(fairseq_cfg, encoder, decoder)
        add_updates(model, cfg)
        if cfg.freeze_sentence_model:
            model.freeze_sentence_model()
        for parameter in model.added_parameters():
            setattr(parameter, LR_SCALE, cfg.context_lr_scale)
        alternate_updates(model, cfg)
        return model

    def freeze_sentence_model(self) -> None:
        """Freezes all parameters of the sentence-level model; added parameters are trained."""
        self.requires_grad_(False)
        for parameter in self.added_parameters():
            parameter.requires_grad_(True)

    def added_parameters(self) -> Iterator[nn.Parameter]:
        """Parameters that a sentence-level model does not have."""
        added = self.context_state_keys() - self.sentence_state_keys()
        return (parameter for name, parameter in self.named_parameters() if name in added)

    def context_parts(self) -> Dict[str, Set[str]]:
        """State-dict keys of each part that a sentence-level model does not have."""
        parts: Dict[str, Set[str]] = defaultdict(set)
        # A state dict has shared modules under all names.
        for name, module in self.named_modules(remove_duplicate=False):
            keys, side = {f"{name}.{key}" for key in module.state_dict()}, name.split(".")[0]
            if isinstance(module, (ContextMechanism, ContextGate)) or name.endswith("context_layer_norm"):
                of_targets = name.startswith("decoder.target_context")
                parts["target context" if of_targets else f"context sub-layers in the {side}"] |= keys
            if isinstance(module, ExtraSources):
                parts["extra sources"] |= keys
            if isinstance(module, CombinedAttention):
                parts["attentions to all sources"] |= keys
            if isinstance(module, ContextAwareEmbedding):
                parts["context-aware embeddings"] |= keys - {f"{name}.weight"}
            if isinstance(module, StructuralPositions):
                for level in ADDED_LEVELS:
                    parts[f"{level} positions"] |= {key for key in keys if key.startswith(f"{name}.{level}.")}
            if name.endswith(".feed_forward") and not isinstance(module, FeedForward) and ".layers." in name:
                stock = f"{name}.v."  # the standard feed-forward inside
                parts[f"context-aware feed-forward in the {side}"] |= {k for k in keys if not k.startswith(stock)}
        updates = {key for key in self.state_dict() if key.endswith(LORA)}
        return {**{part: keys - updates for part, keys in parts.items()}, UPDATES: updates}

    def context_state_keys(self) -> Set[str]:
        """State-dict keys of all added parts."""
        return set().union(*self.context_parts().values())

    def sentence_state_keys(self) -> Set[str]:
        """State-dict keys of a sentence-level model, including the token attention of a mechanism that replaces it."""
        replaced = (".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj.", ".self_attn.out_proj.")
        parts = self.context_parts()
        context, added = set().union(*parts.values()), parts[UPDATES] | parts.get("extra sources", set())
        return {
            key
            for key in self.state_dict()
            if key not in context or (key not in added and any(part in key for part in replaced))
        }

    def upgrade_state_dict_named(self, state_dict: Dict[str, Tensor], name: str) -> None:
        """Accepts a sentence-level checkpoint, fairseq's or ours: missing parts keep their initialisation.

        A part with some but not all keys is left as it is, so that loading reports the missing ones.
        """
        for key in [key for key in state_dict if key.rpartition(".")[2] in FAST_PATH_WEIGHTS]:
            del state_dict[key]
        super().upgrade_state_dict_named(state_dict, name)
        positions = "encoder.embed_positions"
        state_dict.pop(f"{positions}._float_tensor", None)
        if f"{positions}.weight" in state_dict:
            state_dict[f"{positions}.word.weight"] = state_dict.pop(f"{positions}.weight")
        own, shared = self.state_dict(), self.sentence_state_keys()
        for key in [key for key in state_dict if key.replace(".feed_forward.fc", ".feed_forward.v.fc") in own]:
            state_dict[key.replace(".feed_forward.fc", ".feed_forward.v.fc")] = state_dict.pop(key)
        for part, keys in self.context_parts().items():
            added = keys - shared
            if added and not added & state_dict.keys():
                logger.info(f"the checkpoint has no {part}: using their initial values")
                state_dict.update({key: own[key] for key in added})
        for module_name, module in self.named_modules():
            if isinstance(module, CombinedAttention):
                module.begin_as_plain_attention(state_dict, module_name)
