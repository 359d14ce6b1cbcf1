"""MarianMT, i.e. OPUS-MT, as Hugging Face has it.

What differs from fairseq's Transformer, and the option of ``document_transformer`` that stands for it:

- sinusoids of another formula, counted from 0: ``--sinusoids marian``;
- the decoder begins with the embedding of the padding, which is zero in what Marian trained: ``--decoder-start pad``.
  The decoder's inputs hold an end of sentence nowhere else, so that it can be replaced where it is embedded;
- the logits have a bias: ``--output-bias``;
- swish, which fairseq has under no option: ``--activation-fn swish``.

Layers are post-norm. Two SentencePiece models split text, one vocabulary (``vocab.json``) numbers the pieces of both;
newer models have a vocabulary a language. Models with several target languages begin the source sentence with the
target's code, ``>>deu<<``.
"""

from pathlib import Path
from typing import Any, Dict, Tuple

from torch import Tensor

from docnmt_fairseq.corpus.subwords import SENTENCEPIECE, load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.bart import Configuration, bias_of, layers_of, shared_embeddings
from docnmt_fairseq.pretrained.released import CONFIGURATION, FAMILIES, Family, Released, Request, TextModels, read_json
from docnmt_fairseq.pretrained.tensors import Tensors
from docnmt_fairseq.pretrained.vocabulary import SPECIAL, Vocabulary, by_row

# What Marian can be and Hugging Face's code does not compute; its files say so all the same.
NEVER = {
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
LEAST_SHARE = 0.5  # of a subword model's pieces, in its vocabulary: all but those that no training sentence had
NUMBERED = ("pad_token_id", "eos_token_id")


@FAMILIES.register("marian")
class Marian(Family):
    """See the module."""

    def read(self, request: Request) -> Released:
        """See :class:`Family`."""
        config = Configuration(request.path / CONFIGURATION, request.configuration())
        for name, supported in NEVER.items():
            config.refuse(name, supported, "Hugging Face's MarianMT does not compute such models either")
        structure = {**config.structure(), "sinusoids": "marian", "decoder_start": "pad"}
        config.refuse("decoder_start_token_id", config.get("pad_token_id", int), "MarianMT begins with the padding")
        shared = config.get("share_encoder_decoder_embeddings", bool, True)
        vocabularies = self._vocabularies(request, config, shared)
        tensors = Tensors.of_folder(request.path)
        state = layers_of(tensors, structure)
        state.update(self._embeddings(tensors, vocabularies, config, shared))
        tensors.leave("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
        tensors.check_all_taken()
        structure["share_all_embeddings"] = shared and config.tied
        structure["share_decoder_input_output_embed"] = config.tied
        structure["output_bias"] = "decoder.output_projection.bias" in state
        models = (request.file("source.spm"), request.file("target.spm"))
        for model, vocabulary in zip(models, vocabularies):
            _check_pieces(model, vocabulary)
        tokens = {symbol[2:-2]: symbol for symbol in vocabularies[0].symbols if _is_code(symbol)}
        source_token = request.token(1, tokens) if tokens else None
        longest = config.get("max_position_embeddings", int)
        text = TextModels(SENTENCEPIECE, models, language_tokens=(source_token, None))
        names = ["vocab.json"] if shared else ["vocab.json", "target_vocab.json"]
        files = [config.path, *(request.path / name for name in names), *models, *tensors.files]
        return Released("marian", structure, state, vocabularies, text, (longest, longest), files, [*tokens])

    def _vocabularies(self, request: Request, config: Configuration, shared: bool) -> Tuple[Vocabulary, Vocabulary]:
        sizes = [config.get("vocab_size", int)]
        names = ["vocab.json"]
        if not shared:
            names.append("target_vocab.json")
            sizes.append(config.get("decoder_vocab_size", int, sizes[0]))
        found = []
        for name, size in zip(names, sizes):
            path = request.file(name)
            ids: Dict[str, Any] = read_json(path)
            missing = [symbol for symbol in ("</s>", "<unk>", "<pad>") if symbol not in ids]
            if missing or len(ids) != size:
                lack = f"lacks {missing[0]}" if missing else f"has {len(ids):,} symbols, the model {size:,}"
                raise InputError(f"{path}: {lack}: the vocabulary does not match the model")
            for numbered, symbol in zip(NUMBERED, ("<pad>", "</s>")):
                if config.get(numbered, int) != ids[symbol]:
                    raise InputError(f"{path}: {symbol} is number {ids[symbol]}, by {CONFIGURATION} another one")
            special = {symbol: ids[symbol] for symbol in SPECIAL if symbol in ids}
            found.append(Vocabulary.of_rows(by_row(ids, size, path), special, path))
        return found[0], found[-1]

    def _embeddings(
        self, tensors: Tensors, vocabularies: Tuple[Vocabulary, Vocabulary], config: Configuration, shared: bool
    ) -> Dict[str, Tensor]:
        """Embeddings and output projection, one table or several."""
        source, target = vocabularies
        if shared and config.tied:
            return shared_embeddings(tensors, source, config.width)
        state = {}
        for side, vocabulary in (("encoder", source), ("decoder", target)):
            table = f"model.{side}.embed_tokens.weight"
            table = "model.shared.weight" if shared and table not in tensors else table
            released = tensors.take(table, (vocabulary.released, config.width))
            state[f"{side}.embed_tokens.weight"] = vocabulary.ordered(released)
        output = "decoder.output_projection.weight"
        if config.tied:
            state[output] = state["decoder.embed_tokens.weight"]
            tensors.leave("lm_head.weight")
        else:
            state[output] = target.ordered(tensors.take("lm_head.weight", (target.released, config.width)))
        tensors.leave("model.shared.weight")
        return {**state, **bias_of(tensors, target)}


def _check_pieces(model: Path, vocabulary: Vocabulary) -> None:
    """Raises :class:`InputError` if few pieces of a subword model are in the vocabulary of its side."""
    processor = load_subword_model(model)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    known = len({*pieces} & {*vocabulary.symbols})
    if known < LEAST_SHARE * len(pieces):
        raise InputError(
            f"{model}: of its {len(pieces):,} pieces {known:,} are in the vocabulary: it is of another model, or of "
            "the other language"
        )


def _is_code(symbol: str) -> bool:
    """Whether a symbol is a target language's code."""
    return symbol.startswith(">>") and symbol.endswith("<<") and len(symbol) > 4
