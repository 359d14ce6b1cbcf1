"""MarianMT (OPUS-MT) of Hugging Face, and FSMT with the same tokenizer, as ``docnmt export`` writes it.

Differences of MarianMT to fairseq's Transformer, as options of ``document_transformer``:

- sinusoids of another formula, from position 0: ``--sinusoids marian``;
- the decoder starts with the embedding of padding: ``--decoder-start pad``;
- the logits have a bias: ``--output-bias``;
- ``--activation-fn swish``.

Layers are post-norm. Text has two SentencePiece models and one vocabulary (``vocab.json``), newer models one per
language. Models with several target languages start the source sentence with a code such as ``>>deu<<``.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

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

    name = "marian"

    def read(self, request: Request) -> ImportedModel:
        """Returns the model."""
        config = Configuration(request.path)
        options = {**config.options(), **self.options(config)}
        shared = self.is_shared(config)
        files = [request.path / name for name in ("vocab.json", "target_vocab.json")[: 1 if shared else 2]]
        models = (request.path / "source.spm", request.path / "target.spm")
        found = [_vocabulary(file, config, size) for file, size in zip(files, self.sizes(config))]
        vocabularies = (found[0], found[-1])
        tensors = Tensors(request.path)
        state = {**read_layers(tensors, options), **self.embeddings(tensors, vocabularies, config, shared)}
        tensors.leave_out(*(f"model.{side}.embed_positions.weight" for side in SIDES))
        tensors.check_all_taken()
        options["share_all_embeddings"] = shared and config.tied
        options["share_decoder_input_output_embed"] = state[OUTPUT] is state["decoder.embed_tokens.weight"]
        options["output_bias"] = BIAS in state
        codes = {symbol[2:-2]: symbol for symbol in vocabularies[0].symbols if CODE.fullmatch(symbol)}
        longest = config["max_position_embeddings"]
        return ImportedModel(
            self.name,
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

    def options(self, config: Configuration) -> Dict[str, Any]:
        """Returns the options that distinguish the family."""
        config.require({**REQUIRED, "decoder_start_token_id": config["pad_token_id"]})
        return {"sinusoids": "marian", "decoder_start": "pad"}

    def is_shared(self, config: Configuration) -> bool:
        """Returns whether both languages share the vocabulary."""
        return bool(config.get("share_encoder_decoder_embeddings", True))

    def sizes(self, config: Configuration) -> List[int]:
        """Returns the sizes of the vocabularies."""
        return [config["vocab_size"], config.get("decoder_vocab_size", config["vocab_size"])]

    def embeddings(
        self, tensors: Tensors, vocabularies: Tuple[Vocabulary, Vocabulary], config: Configuration, shared: bool
    ) -> Dict[str, Tensor]:
        """Returns the tables of source, target and output, and the bias of the logits if there is one."""
        if shared and config.tied:
            return read_shared_embeddings(tensors, vocabularies[0], config["d_model"])
        state = {}
        for side, vocabulary in zip(SIDES, vocabularies):
            table = f"model.{side}.embed_tokens.weight"
            table = "model.shared.weight" if shared and table not in tensors else table
            state[f"{side}.embed_tokens.weight"] = _table(tensors, table, vocabulary, config)
        if config.tied:
            state[OUTPUT] = state["decoder.embed_tokens.weight"]
            tensors.leave_out("lm_head.weight")
        else:
            state[OUTPUT] = _table(tensors, "lm_head.weight", vocabularies[1], config)
        tensors.leave_out("model.shared.weight")
        return {**state, **read_bias(tensors, vocabularies[1])}


@FAMILIES.register("fsmt")
class FSMT(Marian):
    """FSMT with SentencePiece models; released FSMT models have BPE codes."""

    name = "fsmt"

    def options(self, config: Configuration) -> Dict[str, Any]:
        """Returns the options that distinguish the family."""
        if config.path.with_name("merges.txt").is_file():
            raise InputError(f"{config.path}: FSMT with BPE codes is not supported; import fairseq's checkpoint of it")
        config.require({"decoder_start_token_id": config["eos_token_id"]})
        return {}

    def is_shared(self, config: Configuration) -> bool:
        """Returns whether both languages share the vocabulary."""
        return not config.path.with_name("target_vocab.json").is_file()

    def sizes(self, config: Configuration) -> List[int]:
        """Returns the sizes of the vocabularies."""
        return [config["src_vocab_size"], config["tgt_vocab_size"]]

    def embeddings(
        self, tensors: Tensors, vocabularies: Tuple[Vocabulary, Vocabulary], config: Configuration, shared: bool
    ) -> Dict[str, Tensor]:
        """Returns the tables of source, target and output, and the bias of the logits if there is one."""
        if config.tied:
            tensors.leave_out(f"model.{OUTPUT}")
            return read_shared_embeddings(tensors, vocabularies[0], config["d_model"])
        names = [*(f"{side}.embed_tokens.weight" for side in SIDES), OUTPUT]
        source, target = vocabularies
        state = {
            name: _table(tensors, f"model.{name}", vocabulary, config)
            for name, vocabulary in zip(names, (source, target, target))
        }
        if state[OUTPUT].equal(state["decoder.embed_tokens.weight"]):
            state[OUTPUT] = state["decoder.embed_tokens.weight"]
        return {**state, **read_bias(tensors, target)}


def _table(tensors: Tensors, name: str, vocabulary: Vocabulary, config: Configuration) -> Tensor:
    return vocabulary.reorder(tensors.take(name, (vocabulary.imported_rows, config["d_model"])))


def _vocabulary(path: Path, config: Configuration, size: int) -> Vocabulary:
    ids: Dict[str, Any] = read_json(path)
    special = {symbol: ids[symbol] for symbol in SPECIAL if symbol in ids}
    expected = {"<pad>": config["pad_token_id"], "</s>": config["eos_token_id"]}
    if len(ids) != size or "<unk>" not in ids or not expected.items() <= special.items():
        raise InputError(f"{path}: {len(ids):,} symbols with {special}; {config.path.name} is of another model")
    return Vocabulary.of_rows(symbols_by_row(ids, size, path), special, path)


def write_tokenizer(text: "HubText", folder: Path) -> Dict[str, Any]:
    """Writes the SentencePiece models and returns the configuration of the tokenizer."""
    for model, side in zip(text.models, ("source", "target")):
        load_subword_model(model)
        copy_file(model, folder / f"{side}.spm")
    source, target = text.codec.languages
    separate = not text.vocabularies.shared
    return {"source_lang": source, "target_lang": target, "separate_vocabs": separate, "model_max_length": 512}
