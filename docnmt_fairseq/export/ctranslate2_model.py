"""A sentence-level Transformer as CTranslate2 reads it."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, List

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.export.sentence_level import SentenceTransformer
from docnmt_fairseq.layers.rounding import BF16, FLOAT32, INT8

ENGINE = "CTranslate2"
QUANTIZATION = {FLOAT32: None, BF16: "bfloat16", INT8: "int8"}
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh", "gelu_fast": "GELUTanh"}


def write_model(transformer: SentenceTransformer, folder: Path, precision: str) -> None:
    """Writes model, vocabularies and configuration.

    Args:
        transformer: the model.
        folder: is there.
        precision: of ``PRECISIONS``.

    Raises:
        InputError: CTranslate2 is not installed, or cannot express the model.
    """
    specs = _specs()
    spec = specs.TransformerSpec(_side(specs, transformer, "encoder"), _side(specs, transformer, "decoder"))
    spec.decoder.projection.weight = transformer.array("decoder.output_projection.weight")
    if transformer.has("decoder.output_projection.bias"):
        spec.decoder.projection.bias = transformer.array("decoder.output_projection.bias")
    transformer.check_all_taken(ENGINE)
    spec.register_source_vocabulary(list(transformer.model.encoder.dictionary.symbols))
    target = transformer.model.decoder.dictionary
    spec.register_target_vocabulary(list(target.symbols))
    spec.config.bos_token, spec.config.unk_token = target.bos_word, target.unk_word
    spec.config.decoder_start_token = target[transformer.decoder_start]
    spec.config.eos_token = target.eos_word
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=QUANTIZATION[precision])
    spec.save(str(folder))


def _specs() -> ModuleType:
    try:
        return importlib.import_module("ctranslate2.specs")
    except ImportError as error:
        raise InputError(
            "--format ctranslate2: needs CTranslate2: pip install 'docnmt_fairseq[ctranslate2]'"
        ) from error


def _side(specs: ModuleType, transformer: SentenceTransformer, side: str) -> Any:
    """The encoder or the decoder."""
    part, cfg = getattr(transformer.model, side), getattr(transformer.cfg, side)
    if transformer.cfg.activation_fn not in ACTIVATIONS:
        raise InputError(
            f"--path: --activation-fn {transformer.cfg.activation_fn}, which {ENGINE} does not know; it has "
            f"{', '.join(ACTIVATIONS)}"
        )
    make = getattr(specs, f"Transformer{side.capitalize()}Spec")
    spec = make(
        len(part.layers),
        cfg.attention_heads,
        pre_norm=cfg.normalize_before,
        no_final_norm=part.layer_norm is None,
        activation=specs.Activation[ACTIVATIONS[transformer.cfg.activation_fn]],
        layernorm_embedding=part.layernorm_embedding is not None,
    )
    embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    embeddings.weight = transformer.array(f"{side}.embed_tokens.weight")
    spec.scale_embeddings = np.dtype("float32").type(part.embed_scale)
    spec.position_encodings.encodings = transformer.positions(side)
    for name in ("layer_norm", "layernorm_embedding"):
        if getattr(part, name) is not None:
            _norm(getattr(spec, name), transformer, f"{side}.{name}")
    for of_layer, name in zip(spec.layer, transformer.layers(side)):
        _layer(of_layer, transformer, name)
    return spec


def _layer(spec: Any, transformer: SentenceTransformer, name: str) -> None:
    _attention(spec.self_attention, transformer, f"{name}.self_attn", [["q_proj", "k_proj", "v_proj"], ["out_proj"]])
    if hasattr(spec, "attention"):  # queries of the target, keys and values of the source
        _attention(
            spec.attention, transformer, f"{name}.encoder_attn", [["q_proj"], ["k_proj", "v_proj"], ["out_proj"]]
        )
    feed_forward = transformer.feed_forward(name)
    _linear(spec.ffn.linear_0, transformer, f"{feed_forward}.fc1")
    _linear(spec.ffn.linear_1, transformer, f"{feed_forward}.fc2")
    _norm(spec.ffn.layer_norm, transformer, f"{name}.final_layer_norm")


def _attention(spec: Any, transformer: SentenceTransformer, name: str, products: List[List[str]]) -> None:
    """An attention; projections of one product stand one after another."""
    for linear, parts in zip(spec.linear, products):
        _linear(linear, transformer, *(f"{name}.{part}" for part in parts))
    _norm(spec.layer_norm, transformer, f"{name}_layer_norm")


def _linear(spec: Any, transformer: SentenceTransformer, *names: str) -> None:
    spec.weight = transformer.array(*(f"{name}.weight" for name in names))
    spec.bias = transformer.array(*(f"{name}.bias" for name in names))


def _norm(spec: Any, transformer: SentenceTransformer, name: str) -> None:
    spec.gamma, spec.beta = transformer.array(f"{name}.weight"), transformer.array(f"{name}.bias")
