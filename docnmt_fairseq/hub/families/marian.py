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
from docnmt_fairseq.hub.base import FAMILIES, Family, ImportedModel, TextModels
from docnmt_fairseq.hub.layout import OUTPUT, SIDES, Configuration, read_bias, read_layers, read_shared_embeddings
from docnmt_fairseq.hub.source import Request, read_json
from docnmt_fairseq.hub.tensors import Tensors
from docnmt_fairseq.hub.vocabulary import BIAS, SPECIAL, Vocabulary, symbols_by_row

if TYPE_CHECKING:
    from docnmt_fairseq.hub.hub_text import HubText

TOKENIZER, CODE = "MarianTokenizer", re.compile(r">>.+<<")
UNSUPPORTED = {  # properties that Marian can have and MarianMT does not compute
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
MIN_KNOWN_PIECES = 0.5  # share of the pieces of a subword model in the vocabulary


@FAMILIES.register("marian")
class Marian(Family):
    """MarianMT."""

    def read(self, request: Request) -> ImportedModel:
        """Returns the model."""
        config = Configuration(request)
        for name, supported in UNSUPPORTED.items():
            config.require(name, supported)
        config.require("decoder_start_token_id", config.get("pad_token_id", int))
        options = {**config.options(), "sinusoids": "marian", "decoder_start": "pad"}
        shared = config.get("share_encoder_decoder_embeddings", bool, True)
        names = ["vocab.json"] if shared else ["vocab.json", "target_vocab.json"]
        size = config.get("vocab_size", int)
        sizes = [size, config.get("decoder_vocab_size", int, size)]
        found = [read_vocabulary(request.file(name), config, size) for name, size in zip(names, sizes)]
        vocabularies = (found[0], found[-1])
        tensors = Tensors.of_folder(request.path)
        state = {**read_layers(tensors, options), **_embeddings(tensors, vocabularies, config, shared)}
        tensors.leave_out(*(f"model.{side}.embed_positions.weight" for side in SIDES))
        tensors.check_all_taken()
        options["share_all_embeddings"] = shared and config.tied
        options["share_decoder_input_output_embed"] = config.tied
        options["output_bias"] = BIAS in state
        models = (request.file("source.spm"), request.file("target.spm"))
        for model, vocabulary in zip(models, vocabularies):
            check_pieces(model, vocabulary)
        tokens = {symbol[2:-2]: symbol for symbol in vocabularies[0].symbols if CODE.fullmatch(symbol)}
        source_token = request.language_token(1, tokens) if tokens else None
        longest = config.get("max_position_embeddings", int)
        text = TextModels(SENTENCEPIECE, models, language_tokens=(source_token, None))
        files = [config.path, *(request.path / name for name in names), *models, *tensors.files]
        return ImportedModel("marian", options, state, vocabularies, text, (longest, longest), files, [*tokens])


def read_vocabulary(path: Path, config: Configuration, size: int) -> Vocabulary:
    """Returns the vocabulary of a file with that number of symbols."""
    ids: Dict[str, Any] = read_json(path)
    for symbol, name in (("<pad>", "pad_token_id"), ("</s>", "eos_token_id")):
        if ids.get(symbol) != config.get(name, int):
            raise InputError(f"{path}: {symbol} is {ids.get(symbol)}, but {name} is {config.get(name, int)}")
    if len(ids) != size or "<unk>" not in ids:
        raise InputError(f"{path}: {len(ids):,} symbols with <unk> expected to be {size:,}; it is of another model")
    special = {symbol: ids[symbol] for symbol in SPECIAL if symbol in ids}
    return Vocabulary.of_rows(symbols_by_row(ids, size, path), special, path)


def _embeddings(
    tensors: Tensors, vocabularies: Tuple[Vocabulary, Vocabulary], config: Configuration, shared: bool
) -> Dict[str, Tensor]:
    source, target = vocabularies
    if shared and config.tied:
        return read_shared_embeddings(tensors, source, config.width)
    state = {}
    for side, vocabulary in zip(SIDES, vocabularies):
        table = f"model.{side}.embed_tokens.weight"
        table = "model.shared.weight" if shared and table not in tensors else table
        rows = tensors.take(table, (vocabulary.imported_rows, config.width))
        state[f"{side}.embed_tokens.weight"] = vocabulary.reorder(rows)
    if config.tied:
        state[OUTPUT] = state["decoder.embed_tokens.weight"]
        tensors.leave_out("lm_head.weight")
    else:
        state[OUTPUT] = target.reorder(tensors.take("lm_head.weight", (target.imported_rows, config.width)))
    tensors.leave_out("model.shared.weight")
    return {**state, **read_bias(tensors, target)}


def check_pieces(model: Path, vocabulary: Vocabulary) -> None:
    """Raises :class:`InputError` if most pieces of a subword model are missing in the vocabulary of its side."""
    processor = load_subword_model(model)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    known = len({*pieces} & {*vocabulary.symbols})
    if known < MIN_KNOWN_PIECES * len(pieces):
        raise InputError(
            f"{model}: {known:,} of {len(pieces):,} pieces are in the vocabulary; another model or language"
        )


def write_tokenizer(text: "HubText", folder: Path) -> Dict[str, Any]:
    """Writes the SentencePiece models and returns the configuration of the tokenizer."""
    for model, side in zip(text.models, ("source", "target")):
        load_subword_model(model)
        copy_file(model, folder / f"{side}.spm")
    source, target = text.languages
    separate = not text.vocabularies.shared
    return {"source_lang": source, "target_lang": target, "separate_vocabs": separate, "model_max_length": 512}
