"""MarianMT (OPUS-MT) of Hugging Face.

Differences to fairseq's Transformer, as options of ``document_transformer``:

- sinusoids of another formula, from position 0: ``--sinusoids marian``;
- the decoder starts with the embedding of padding: ``--decoder-start pad``;
- the logits have a bias: ``--output-bias``;
- ``--activation-fn swish``.

Layers are post-norm. Text has two SentencePiece models and one vocabulary (``vocab.json``), newer models one per
language. Models with several target languages start the source sentence with a code such as ``>>deu<<``.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Tuple

from torch import Tensor

from docnmt_fairseq.corpus.subwords import SENTENCEPIECE, load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import copy_file
from docnmt_fairseq.hub.base import FAMILIES, Family, ImportedModel, Request, read_json
from docnmt_fairseq.hub.layout import OUTPUT, SIDES, Configuration, read_bias, read_layers, read_shared_embeddings
from docnmt_fairseq.hub.tensors import Tensors
from docnmt_fairseq.hub.vocabulary import BIAS, SPECIAL, Vocabulary, symbols_by_row

if TYPE_CHECKING:
    from docnmt_fairseq.hub.hub_text import HubText

TOKENIZER, CODE = "MarianTokenizer", re.compile(r">>.+<<")
REQUIRED = {  # properties that Marian can have and MarianMT does not compute
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}


@FAMILIES.register("marian")
class Marian(Family):
    """MarianMT."""

    def read(self, request: Request) -> ImportedModel:
        """Returns the model."""
        config = Configuration(request.path)
        config.require({**REQUIRED, "decoder_start_token_id": config["pad_token_id"]})
        options = {**config.options(), "sinusoids": "marian", "decoder_start": "pad"}
        shared = config.get("share_encoder_decoder_embeddings", True)
        files = [request.file(name) for name in ("vocab.json", "target_vocab.json")[: 1 if shared else 2]]
        sizes = [config["vocab_size"], config.get("decoder_vocab_size", config["vocab_size"])]
        found = [_vocabulary(file, config, size) for file, size in zip(files, sizes)]
        vocabularies = (found[0], found[-1])
        tensors = Tensors(request.path)
        state = {**read_layers(tensors, options), **_embeddings(tensors, vocabularies, config, shared)}
        tensors.leave_out(*(f"model.{side}.embed_positions.weight" for side in SIDES))
        tensors.check_all_taken()
        options["share_all_embeddings"] = shared and config.tied
        options["share_decoder_input_output_embed"] = config.tied
        options["output_bias"] = BIAS in state
        codes = {symbol[2:-2]: symbol for symbol in vocabularies[0].symbols if CODE.fullmatch(symbol)}
        longest, models = config["max_position_embeddings"], (request.file("source.spm"), request.file("target.spm"))
        return ImportedModel(
            "marian",
            options,
            state,
            vocabularies,
            (longest, longest),
            SENTENCEPIECE,
            models,
            language_tokens=(request.language_token(1, codes) if codes else None, None),
            files=[config.path, *files, *models, *tensors.files],
            languages=[*codes],
        )


def _vocabulary(path: Path, config: Configuration, size: int) -> Vocabulary:
    ids: Dict[str, Any] = read_json(path)
    for symbol, name in (("<pad>", "pad_token_id"), ("</s>", "eos_token_id")):
        if ids.get(symbol) != config[name]:
            raise InputError(f"{path}: {symbol} is {ids.get(symbol)}, but {name} is {config[name]}")
    if len(ids) != size or "<unk>" not in ids:
        raise InputError(f"{path}: {len(ids):,} symbols with <unk> expected to be {size:,}; it is of another model")
    special = {symbol: ids[symbol] for symbol in SPECIAL if symbol in ids}
    return Vocabulary.of_rows(symbols_by_row(ids, size, path), special, path)


def _embeddings(
    tensors: Tensors, vocabularies: Tuple[Vocabulary, Vocabulary], config: Configuration, shared: bool
) -> Dict[str, Tensor]:
    source, target = vocabularies
    width = config["d_model"]
    if shared and config.tied:
        return read_shared_embeddings(tensors, source, width)
    state = {}
    for side, vocabulary in zip(SIDES, vocabularies):
        table = f"model.{side}.embed_tokens.weight"
        table = "model.shared.weight" if shared and table not in tensors else table
        state[f"{side}.embed_tokens.weight"] = vocabulary.reorder(
            tensors.take(table, (vocabulary.imported_rows, width))
        )
    if config.tied:
        state[OUTPUT] = state["decoder.embed_tokens.weight"]
        tensors.leave_out("lm_head.weight")
    else:
        state[OUTPUT] = target.reorder(tensors.take("lm_head.weight", (target.imported_rows, width)))
    tensors.leave_out("model.shared.weight")
    return {**state, **read_bias(tensors, target)}


def write_tokenizer(text: "HubText", folder: Path) -> Dict[str, Any]:
    """Writes the SentencePiece models and returns the configuration of the tokenizer."""
    for model, side in zip(text.models, ("source", "target")):
        load_subword_model(model)
        copy_file(model, folder / f"{side}.spm")
    source, target = text.codec.languages
    separate = not text.vocabularies.shared
    return {"source_lang": source, "target_lang": target, "separate_vocabs": separate, "model_max_length": 512}
