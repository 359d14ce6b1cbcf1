"""What a checkpoint of a Transformer says about its own structure, as options of ``document_transformer``."""

from argparse import Namespace
from functools import lru_cache
from typing import Any, Dict, Iterator, Mapping

from fairseq.models.transformer import TransformerConfig
from omegaconf import OmegaConf

from docnmt_fairseq.checkpoints import read_configuration
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import plain

# The options that decide what parameters there are and what is computed from them, beside context and training.
OF_SIDES = ("embed_dim", "ffn_embed_dim", "layers", "attention_heads", "normalize_before")
SHARED = (
    "activation_fn",
    "share_decoder_input_output_embed",
    "share_all_embeddings",
    "layernorm_embedding",
    "no_scale_embedding",
)
OWN = ("word_positions", "decoder_learned_pos", "sinusoids", "decoder_start", "output_bias")
POSITIONS = ("max_source_positions", "max_target_positions")
STRUCTURE = (*(f"{side}_{name}" for side in ("encoder", "decoder") for name in OF_SIDES), *SHARED, *OWN)


def structure_of_transformer(cfg: TransformerConfig) -> Dict[str, Any]:
    """The options for a Transformer of fairseq.

    Raises:
        InputError: it has parts that ``document_transformer`` has not.
    """
    problems = list(_unsupported(cfg))
    if problems:
        raise InputError(f"this Transformer has {', '.join(problems)}, which document_transformer has not")
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
        "adaptive_input",
        "adaptive_softmax_cutoff",
        "no_token_positional_embeddings",
        "no_cross_attention",
        "cross_self_attention",
        "merge_src_tgt_embed",
        "no_decoder_final_norm",
        "char_inputs",
        "base_layers",
    )
    yield from (name for name in switches if getattr(cfg, name, None))
    if any(side.xformers_att_config for side in (cfg.encoder, cfg.decoder)):
        yield "attention of xformers"
    width = cfg.decoder.embed_dim
    if cfg.decoder.output_dim not in (width, None) or cfg.decoder.input_dim not in (width, None):
        yield "another width at the decoder's input or output"


@lru_cache(1)
def structure_of_checkpoint(path: str) -> Mapping[str, Any]:
    """The options that make a sentence-level model of the structure of a checkpoint's, and its positions.

    Raises:
        InputError: no such file, no checkpoint of a Transformer, or one with parts that ``document_transformer`` lacks.
    """
    cfg: Any = read_configuration(path).model
    values: Dict[str, Any] = vars(cfg)  # as fairseq's older models have it
    if OmegaConf.is_config(cfg):
        values = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)  # type: ignore[assignment]
    name = str(values.get("_name") or values.get("arch"))
    if name.startswith("document_transformer"):
        options = {key: values[key] for key in STRUCTURE if key in values}
    elif "transformer" in name or "bart" in name:
        options = structure_of_transformer(TransformerConfig.from_namespace(Namespace(**values)))
    else:
        raise InputError(
            f"{path}: a model of the architecture {name}; a document_transformer goes on from Transformers"
        )
    return {**options, **{key: values[key] for key in POSITIONS if values.get(key)}}
