"""fairseq's own Transformer as a ``document_transformer`` without context: the same parameters, the same function."""

from argparse import Namespace
from typing import Optional

from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerModel, TransformerModelBase
from torch import nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.transformer.activations import ACTIVATIONS
from docnmt_fairseq.models.transformer.model import DocumentTransformer

STOCK = (TransformerModel, TransformerModelBase)  # not their subclasses, which do other things
SAME = (
    "activation_fn", "max_source_positions", "max_target_positions", "share_decoder_input_output_embed",
    "share_all_embeddings", "no_token_positional_embeddings", "layernorm_embedding", "no_scale_embedding",
)  # fmt: skip
SAME_OF_SIDES = ("embed_dim", "ffn_embed_dim", "attention_heads", "normalize_before", "learned_pos")


def of_stock(model: BaseFairseqModel) -> Optional[DocumentTransformer]:
    """The model that computes what fairseq's ``transformer`` does, of the very same tensors, in evaluation mode.

    Args:
        model: any model, in evaluation mode, on its device.

    Returns:
        None for one that is no ``transformer``, or has parts that ``document_transformer`` has no place for: adaptive
        inputs or softmax, one attention to both sides, other widths inside the decoder, …
    """
    if type(model) not in STOCK or model.cfg.activation_fn not in ACTIVATIONS:
        return None
    other_attention = [part.xformers_att_config for part in (model.cfg.encoder, model.cfg.decoder)]
    if model.cfg.cross_self_attention or any(other_attention):  # of the same parameters
        return None
    task = Namespace(source_dictionary=model.encoder.dictionary, target_dictionary=model.decoder.dictionary)
    try:
        found = DocumentTransformer.build_model(_options(model), task)
    except InputError:
        return None
    some = next(model.parameters())
    found.to(some.device, some.dtype)
    state = model.state_dict()
    found.upgrade_state_dict(state)
    own = found.state_dict()
    if own.keys() != state.keys() or any(own[name].shape != state[name].shape for name in own):
        return None
    nn.Module.load_state_dict(found, state, assign=True)  # fairseq's copies
    return found.eval()


def _options(model: BaseFairseqModel) -> Namespace:
    """A fairseq model's options under the names of ``document_transformer``."""
    cfg, options = model.cfg, Namespace(seed=1, extra_sources="")
    for name in SAME:
        setattr(options, name, getattr(cfg, name))
    for side in ("encoder", "decoder"):
        for name in SAME_OF_SIDES:
            setattr(options, f"{side}_{name}", getattr(getattr(cfg, side), name))
        setattr(options, f"{side}_layers", len(getattr(model, side).layers))  # some may have been left out
    kind = "learned" if cfg.encoder.learned_pos else "sinusoidal"
    options.word_positions = "none" if cfg.no_token_positional_embeddings else kind
    return DocumentTransformer.complete(options)
