"""A translation engine of another environment, which CTranslate2 is installed in: ``ctranslate2_worker.py FOLDER``.

The folder holds ``weights.npz``, fairseq's parameters by their names, ``model.json`` with the sizes and the vocabulary,
and ``source.json`` with the sentences. For every line of standard input that names a type, all sentences are
translated once; a line of JSON gives the processor's seconds and the translations.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Dict

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec, attention_spec, common_spec


def linear(spec: common_spec.LinearSpec, weights: Dict[str, np.ndarray], *names: str) -> None:
    """Sets a linear map, of several to one after another."""
    spec.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def norm(spec: common_spec.LayerNormSpec, weights: Dict[str, np.ndarray], name: str) -> None:
    """Sets a layer norm."""
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def attention(
    spec: attention_spec.MultiHeadAttentionSpec, weights: Dict[str, np.ndarray], name: str, own: bool
) -> None:
    """Sets an attention, to the tokens themselves or to others."""
    q, k, v, out = (f"{name}.{part}_proj" for part in ("q", "k", "v", "out"))
    for part, names in zip(spec.linear, ([q, k, v], [out]) if own else ([q], [k, v], [out])):
        linear(part, weights, *names)
    norm(spec.layer_norm, weights, f"{name}_layer_norm")


def layer(spec: Any, weights: Dict[str, np.ndarray], name: str) -> None:
    """Sets a layer of the encoder or the decoder."""
    attention(spec.self_attention, weights, f"{name}.self_attn", own=True)
    if hasattr(spec, "attention"):
        attention(spec.attention, weights, f"{name}.encoder_attn", own=False)
    linear(spec.ffn.linear_0, weights, f"{name}.fc1")
    linear(spec.ffn.linear_1, weights, f"{name}.fc2")
    norm(spec.ffn.layer_norm, weights, f"{name}.final_layer_norm")


def sinusoids(positions: int, width: int) -> np.ndarray:
    """fairseq's embeddings of positions, [positions, width]."""
    rates = np.exp(np.arange(width // 2) * -(np.log(10000) / (width // 2 - 1)))
    angles = (np.arange(positions) + 2)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def convert(folder: Path, sizes: Dict[str, Any]) -> None:
    """Writes the model as CTranslate2 reads it."""
    weights = dict(np.load(folder / "weights.npz"))
    layers, heads = sizes["layers"], sizes["heads"]
    spec = TransformerSpec.from_config((layers, layers), heads, pre_norm=False)
    for side in ("encoder", "decoder"):
        part = getattr(spec, side)
        embeddings = part.embeddings[0] if isinstance(part.embeddings, list) else part.embeddings
        embeddings.weight = weights[f"{side}.embed_tokens.weight"]
        embeddings.multiply_by_sqrt_depth = True
        part.position_encodings.encodings = sinusoids(1024, embeddings.weight.shape[1])
        for number, of_layer in enumerate(part.layer):
            layer(of_layer, weights, f"{side}.layers.{number}")
    spec.decoder.projection.weight = weights["decoder.embed_tokens.weight"]
    for register in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        register(sizes["vocabulary"])
    spec.config.bos_token = spec.config.decoder_start_token = spec.config.eos_token = "</s>"
    spec.config.unk_token, spec.config.add_source_eos = "<unk>", True
    spec.validate()
    spec.save(str(folder / "ctranslate2"))


def main(folder: Path) -> None:
    """Converts, then translates whenever it is told to."""
    sizes = json.loads((folder / "model.json").read_text())
    sentences = json.loads((folder / "source.json").read_text())
    if not (folder / "ctranslate2").is_dir():
        (folder / "ctranslate2").mkdir()
        convert(folder, sizes)
    translators: Dict[str, ctranslate2.Translator] = {}
    print(json.dumps({"version": ctranslate2.__version__}), flush=True)
    for line in sys.stdin:
        kind = line.strip()
        if kind not in translators:
            path = str(folder / "ctranslate2")
            translators[kind] = ctranslate2.Translator(path, compute_type=kind, inter_threads=1, intra_threads=1)
        start = time.process_time()
        found = translators[kind].translate_batch(
            sentences, beam_size=sizes["beam"], max_batch_size=sizes["batch"], min_decoding_length=sizes["length"],
            max_decoding_length=sizes["length"],
        )  # fmt: skip
        seconds = time.process_time() - start
        print(json.dumps({"seconds": seconds, "translations": [one.hypotheses[0] for one in found]}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
