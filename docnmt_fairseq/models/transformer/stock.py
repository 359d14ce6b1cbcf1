"""Transformers of fairseq as ``document_transformer``: options of their structure, and conversion of models."""

from argparse import Namespace
from copy import copy
from functools import lru_cache
from typing import Any, Dict, Iterator, Mapping, Optional

from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerConfig, TransformerModel, TransformerModelBase
from omegaconf import OmegaConf
from torch import nn

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from docnmt_fairseq.options import plain

# Options that define the parameters of a sentence-level model and what it computes.
OF_SIDES = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads", "normalize_before")
SHARED = (
    "activation_fn", "share_decoder_input_output_embed", "share_all_embeddings", "layernorm_embedding",
    "no_scale_embedding",
)  # fmt: skip
OWN = ("word_positions", "decoder_learned_pos", "sinusoids", "decoder_start", "output_bias")
STRUCTURE = (*(f"{side}_{name}" for side in ("encoder", "decoder") for name in OF_SIDES), *SHARED, *OWN)
STOCK = (TransformerModel, TransformerModelBase)  # not their subclasses, which differ


def structure_of_transformer(cfg: TransformerConfig) -> Dict[str, Any]:
    """Options of ``document_transformer`` for a Transformer of fairseq.

    Raises:
        InputError: the model has parts that ``document_transformer`` lacks.
    """
    problems = list(_unsupported(cfg))
    if problems:
        raise InputError(f"document_transformer does not support this Transformer's {', '.join(problems)}")
    options = {
        f"{side}_{name}": getattr(getattr(cfg, side), name) for side in ("encoder", "decoder") for name in OF_SIDES
    }
    options.update({name: plain(getattr(cfg, name)) for name in SHARED})
    options["word_positions"] = "learned" if cfg.encoder.learned_pos else "sinusoidal"
    options["decoder_learned_pos"] = cfg.decoder.learned_pos
    options["share_decoder_input_output_embed"] |= cfg.share_all_embeddings
    return options


def _unsupported(cfg: TransformerConfig) -> Iterator[str]:
    switches = (
        "adaptive_input", "adaptive_softmax_cutoff", "no_token_positional_embeddings", "no_cross_attention",
        "cross_self_attention", "merge_src_tgt_embed", "no_decoder_final_norm", "char_inputs", "base_layers",
    )  # fmt: skip
    yield from (name for name in switches if getattr(cfg, name, None))
    if any(side.xformers_att_config for side in (cfg.encoder, cfg.decoder)):
        yield "xformers attention"
    width = cfg.decoder.embed_dim
    if cfg.decoder.output_dim not in (width, None) or cfg.decoder.input_dim not in (width, None):
        yield "different width at the decoder's input or output"


@lru_cache(1)
def structure_of_checkpoint(path: str) -> Mapping[str, Any]:
    """Options for a sentence-level model with the structure of the Transformer in a checkpoint.

    Raises:
        InputError: no such file, not a checkpoint, or unsupported parts.
    """
    from docnmt_fairseq.checkpoints import read_configuration

    cfg: Any = read_configuration(path).model
    values: Dict[str, Any] = vars(cfg)  # of fairseq's older models
    if OmegaConf.is_config(cfg):
        values = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)  # type: ignore[assignment]
    if str(values.get("_name") or values.get("arch")).startswith("document_transformer"):
        return {key: values[key] for key in STRUCTURE if key in values}
    return structure_of_transformer(TransformerConfig.from_namespace(Namespace(**values)))


def of_stock(model: BaseFairseqModel) -> Optional[DocumentTransformer]:
    """``document_transformer`` that shares the tensors of fairseq's ``transformer`` and computes the same function.

    Args:
        model: any model, in evaluation mode, on its device.

    Returns:
        None for other models, or if parts are unsupported (adaptive inputs or softmax, different decoder widths, …).
    """
    if type(model) not in STOCK:
        return None
    cfg = copy(model.cfg)
    positions = {name: getattr(cfg, name) for name in ("max_source_positions", "max_target_positions")}
    options = Namespace(seed=1, extra_sources="", **positions)
    without_positions = cfg.no_token_positional_embeddings  # possible here, although not an option of our model
    cfg.no_token_positional_embeddings = False
    task = Namespace(source_dictionary=model.encoder.dictionary, target_dictionary=model.decoder.dictionary)
    try:
        vars(options).update(structure_of_transformer(cfg))
        if without_positions:
            options.word_positions, options.no_token_positional_embeddings = "none", True
        for side in ("encoder", "decoder"):
            setattr(options, f"{side}_layers", len(getattr(model, side).layers))  # some may have been dropped
        converted = DocumentTransformer.build_model(DocumentTransformer.complete(options), task)
    except InputError:
        return None
    some = next(model.parameters())
    converted.to(some.device, some.dtype)
    state = model.state_dict()
    converted.upgrade_state_dict(state)
    own = converted.state_dict()
    if own.keys() != state.keys() or any(own[name].shape != state[name].shape for name in own):
        return None
    nn.Module.load_state_dict(converted, state, assign=True)  # fairseq's method copies
    return converted.eval()
