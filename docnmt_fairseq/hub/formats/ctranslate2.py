"""Format ``ctranslate2``: a sentence-level Transformer for CTranslate2, with its text models and a program."""

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Tuple

from docnmt_fairseq.errors import needs_extra
from docnmt_fairseq.files import write_bytes
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS, ExportFormat, copy_text_models

if TYPE_CHECKING:
    from docnmt_fairseq.checkpoints import Ensemble
    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.hub.sentence_level import SentenceTransformer

ENGINE = "CTranslate2"
QUANTIZATION = {"float32": None, "bf16": "bfloat16", "int8": "int8"}
ACTIVATIONS = {
    "relu": "RELU", "gelu": "GELU", "gelu_accurate": "GELUTanh", "gelu_fast": "GELUTanh", "swish": "SWISH",
    "tanh": "Tanh",
}  # fmt: skip
TEXT = "text"  # folder of the text models, in the layout of docnmt prepare
MAX_LENGTH = 200  # tokens of a translation in the program, as in docnmt translate
SEARCH = 'max_decoding_length={}, suppress_sequences=[["<pad>"]]'
WITH_CODEC = """from pathlib import Path

import ctranslate2
from docnmt_fairseq.corpus.pipeline import TextCodec

text = TextCodec.of_output(Path("FOLDER/text"))
translator = ctranslate2.Translator("FOLDER")
sentences = ["A sentence.", "Another one."]
tokens = [line.split() for line in text.encode(0, sentences)]
found = translator.translate_batch(tokens, beam_size=5, SEARCH)
print([text.decode(" ".join(one.hypotheses[0])) for one in found])
"""
WITH_SENTENCEPIECE = """import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="FOLDER/text/models/SOURCE")
target = sentencepiece.SentencePieceProcessor(model_file="FOLDER/text/models/TARGET")
translator = ctranslate2.Translator("FOLDER")
tokens = source.encode(["A sentence.", "Another one."], out_type=str)
found = translator.translate_batch(tokens, beam_size=5, SEARCH)
translations = [target.decode(one.hypotheses[0]) for one in found]
print([text.replace("\\u2581", " ") for text in translations])  # in pieces that only the source model knows
"""
WITH_TOKENS = """import ctranslate2

translator = ctranslate2.Translator("FOLDER")
tokens = [line.split() for line in ["a sentence .", "another one ."]]  # in the form of the training data
found = translator.translate_batch(tokens, beam_size=5, SEARCH)
print([" ".join(one.hypotheses[0]) for one in found])
"""


@EXPORT_FORMATS.register("ctranslate2")
class CTranslate2Folder(ExportFormat):
    """Folder for CTranslate2 (https://opennmt.net/CTranslate2), which needs neither this package nor PyTorch."""

    help = "folder for CTranslate2, sentence-level models"

    def write(self, ensemble: "Ensemble", folder: Path, precision: str, without_context: bool) -> None:
        """Writes model, vocabularies, text models and page."""
        from docnmt_fairseq.hub.sentence_level import SentenceTransformer

        _write_model(SentenceTransformer.of(ensemble, ENGINE, without_context), folder, precision)
        positions = ensemble.model.decoder.max_positions()
        write_text_models(ensemble.data, folder, min(MAX_LENGTH, positions - 2))  # after start and language token


def _write_model(transformer: "SentenceTransformer", folder: Path, precision: str) -> None:
    """Writes the model and its vocabularies."""
    with needs_extra("ctranslate2", "--format ctranslate2"):
        specs: Any = importlib.import_module("ctranslate2.specs")
    spec = specs.TransformerSpec(_side(specs, transformer, "encoder"), _side(specs, transformer, "decoder"))
    spec.decoder.projection.weight = transformer.array("decoder.output_projection.weight")
    if transformer.has("decoder.output_projection.bias"):
        spec.decoder.projection.bias = transformer.array("decoder.output_projection.bias")
    transformer.check_all_taken(ENGINE)
    target = transformer.model.decoder.dictionary
    spec.register_source_vocabulary(list(transformer.model.encoder.dictionary.symbols))
    spec.register_target_vocabulary(list(target.symbols))
    spec.config.bos_token, spec.config.unk_token = target.bos_word, target.unk_word
    spec.config.decoder_start_token = target[transformer.decoder_start]
    spec.config.eos_token = target.eos_word
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=QUANTIZATION[precision])
    spec.save(str(folder))


def _side(specs: Any, transformer: "SentenceTransformer", side: str) -> Any:
    part, cfg = getattr(transformer.model, side), getattr(transformer.cfg, side)
    spec = getattr(specs, f"Transformer{side.capitalize()}Spec")(
        len(part.layers),
        cfg.attention_heads,
        pre_norm=cfg.normalize_before,
        no_final_norm=part.layer_norm is None,
        activation=specs.Activation[ACTIVATIONS[transformer.cfg.activation_fn]],
        layernorm_embedding=part.layernorm_embedding is not None,
    )
    embeddings = spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings
    embeddings.weight = transformer.array(f"{side}.embed_tokens.weight")
    spec.scale_embeddings = embeddings.weight.dtype.type(part.embed_scale)
    spec.position_encodings.encodings = transformer.positions(side)
    for name in ("layer_norm", "layernorm_embedding"):
        if getattr(part, name) is not None:
            _norm(getattr(spec, name), transformer, f"{side}.{name}")
    for layer, name in zip(spec.layer, transformer.layers(side)):
        _attention(
            layer.self_attention, transformer, f"{name}.self_attn", [["q_proj", "k_proj", "v_proj"], ["out_proj"]]
        )
        if hasattr(layer, "attention"):
            parts = [["q_proj"], ["k_proj", "v_proj"], ["out_proj"]]
            _attention(layer.attention, transformer, f"{name}.encoder_attn", parts)
        feed_forward = transformer.feed_forward(name)
        _linear(layer.ffn.linear_0, transformer, f"{feed_forward}.fc1")
        _linear(layer.ffn.linear_1, transformer, f"{feed_forward}.fc2")
        _norm(layer.ffn.layer_norm, transformer, f"{name}.final_layer_norm")
    return spec


def _attention(spec: Any, transformer: "SentenceTransformer", name: str, projections: List[List[str]]) -> None:
    for linear, parts in zip(spec.linear, projections):
        _linear(linear, transformer, *(f"{name}.{part}" for part in parts))
    _norm(spec.layer_norm, transformer, f"{name}_layer_norm")


def _linear(spec: Any, transformer: "SentenceTransformer", *names: str) -> None:
    spec.weight = transformer.array(*(f"{name}.weight" for name in names))
    spec.bias = transformer.array(*(f"{name}.bias" for name in names))


def _norm(spec: Any, transformer: "SentenceTransformer", name: str) -> None:
    spec.gamma, spec.beta = transformer.array(f"{name}.weight"), transformer.array(f"{name}.bias")


def write_text_models(data: Path, folder: Path, longest: int = MAX_LENGTH) -> None:
    """Copies the models from text to tokens, if ``docnmt prepare`` made the data, and writes a page.

    Args:
        data: output of ``docnmt prepare``, or data-bin.
        folder: exported folder.
        longest: maximum number of tokens of a translation.

    Raises:
        InputError: a text model is missing; the targets are edit operations.
    """
    from docnmt_fairseq.corpus.prepared import is_prepared

    if not is_prepared(data):
        text, program, prefix = "The input consists of tokens in the form of the training data.", WITH_TOKENS, ""
    else:
        text, program, prefix = _usage(copy_text_models(data, folder / TEXT))
    lines = ["# CTranslate2 model", "", "Written by `docnmt export`; translates one sentence at a time.", text]
    lines += ["", "```python", f"{program.replace('SEARCH', SEARCH.format(longest) + prefix)}```", ""]
    write_bytes(folder / "README.md", "\n".join(lines).encode())


def _usage(codec: "TextCodec") -> Tuple[str, str, str]:
    """Returns the steps from text to tokens, a program that translates, and its argument for the language token."""
    from docnmt_fairseq.corpus.subwords import WITH_CODES

    source, target = codec.pipelines
    steps = [f"tokenizer {name}" for name in dict.fromkeys((source.tokenizer, target.tokenizer)) if name != "none"]
    steps += ["truecasing"] if source.truecase else []
    if source.subwords != "none":
        steps.append("BPE codes" if source.subwords in WITH_CODES else "SentencePiece")
    tokens = [source.language_token, target.language_token]
    steps += [f"language token {token}" for token in tokens if token]
    program = WITH_CODEC
    if steps == ["SentencePiece"]:
        program = WITH_SENTENCEPIECE.replace("SOURCE", str(source.subword_file)).replace(
            "TARGET", str(target.subword_file)
        )
    prefix = f", target_prefix=[[{json.dumps(tokens[1])}]] * len(tokens)" if tokens[1] else ""
    return f"Steps from text to tokens: {', '.join(steps) or 'splitting at spaces'}.", program, prefix
