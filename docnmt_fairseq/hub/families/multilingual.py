"""M2M-100, NLLB-200 and mBART-50 of Hugging Face: pre-norm, one embedding table, language tokens on both sides.

M2M-100 and NLLB-200 can be expressed by fairseq's own ``transformer``; mBART-50 has learned positions and a layer norm
after the embeddings. Relatives with language tokens in other places are rejected, since they would translate wrongly:
SMaLL-100, NLLB-200 with ``legacy_behaviour``, mBART-25.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Tuple

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.subwords import SENTENCEPIECE, load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import copy_file, read_json, write_json
from docnmt_fairseq.hub.base import FAMILIES, Family, ImportedModel, Request
from docnmt_fairseq.hub.base import read_json as read_config
from docnmt_fairseq.hub.hub_text import NLLB_CODE
from docnmt_fairseq.hub.layout import SIDES, Configuration, read_layers, read_shared_embeddings
from docnmt_fairseq.hub.tensors import Tensors
from docnmt_fairseq.hub.vocabulary import BIAS, MASK, SPECIAL, Vocabulary, symbols_by_row

if TYPE_CHECKING:
    from docnmt_fairseq.hub.hub_text import HubText

SENTENCEPIECE_MODEL = "sentencepiece.bpe.model"
MODEL_SPECIAL = ("<unk>", "<s>", "</s>")  # first pieces of the SentencePiece models
M2M, NLLB, MBART = ("M2M100Tokenizer", "NllbTokenizer", "MBart50Tokenizer")
STYLES = {  # language tokens by tokenizer
    M2M: re.compile(r"__[a-z]{2,3}__"),
    NLLB: NLLB_CODE,
    MBART: re.compile(r"[a-z]{2}_[A-Z]{2}"),
}
OPTIONS = {
    "encoder_normalize_before": True,
    "decoder_normalize_before": True,
    "share_all_embeddings": True,
    "share_decoder_input_output_embed": True,
}
MBART_OPTIONS = {"layernorm_embedding": True, "word_positions": "learned", "decoder_learned_pos": True}
REQUIRED = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "tie_word_embeddings": True}
TOKENIZER_CONFIG, OFFSET = "tokenizer_config.json", 2  # offset: rows before the first learned position
M2M_TOKENIZERS = (M2M, NLLB, "PreTrainedTokenizer", "TokenizersBackend")
ONLY_IN_MBART_50 = {
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "gl_ES", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN", "mn_MN",
    "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sl_SI", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK",
    "xh_ZA",
}  # fmt: skip


# --- Import ---


@FAMILIES.register("m2m_100")
class M2M100(Family):
    """M2M-100 and NLLB-200."""

    name, is_mbart = "m2m_100", False

    def read(self, request: Request) -> ImportedModel:
        """Returns the model."""
        config = Configuration(request.path)
        config.require(REQUIRED)
        options = {**config.options(), **OPTIONS, **(MBART_OPTIONS if self.is_mbart else {})}
        vocabulary, tokens, files = _vocabulary(request, config["vocab_size"])
        by_language = {token.removeprefix("__").removesuffix("__"): token for token in tokens}
        _check_tokenizer(config, by_language, self.is_mbart)
        tensors = Tensors(request.path)
        width, longest = config["d_model"], config["max_position_embeddings"]
        norms = ("layer_norm", "layernorm_embedding") if self.is_mbart else ("layer_norm",)
        state = {**read_layers(tensors, options, norms), **read_shared_embeddings(tensors, vocabulary, width)}
        for side in SIDES if self.is_mbart else ():
            positions = f"{side}.embed_positions.weight"
            state[positions] = tensors.take(f"model.{positions}", (longest + OFFSET, width))
        tensors.leave_out(*(f"model.{side}.embed_positions.weights" for side in SIDES))  # sinusoids in old checkpoints
        tensors.check_all_taken()
        options["output_bias"] = BIAS in state
        model = request.path / SENTENCEPIECE_MODEL
        return ImportedModel(
            self.name,
            options,
            state,
            (vocabulary, vocabulary),
            (longest, longest),
            SENTENCEPIECE,
            (model, model),
            language_tokens=(request.language_token(0, by_language), request.language_token(1, by_language)),
            files=[config.path, *files, *tensors.files],
            languages=[*by_language],
        )


@FAMILIES.register("mbart")
class MBart50(M2M100):
    """mBART-50."""

    name, is_mbart = "mbart", True


def _check_tokenizer(config: Configuration, languages: Mapping[str, str], is_mbart: bool) -> None:
    """Raises :class:`InputError` for relatives with language tokens in other places."""
    path = config.path.with_name(TOKENIZER_CONFIG)
    tokenizer = read_config(path) if path.is_file() else {}
    kind = str(tokenizer.get("tokenizer_class", config.get("tokenizer_class")) or "")
    if is_mbart:
        of_25 = kind.startswith("MBartTokenizer")
        supported = kind.startswith(MBART) or (not of_25 and bool(ONLY_IN_MBART_50 & {*languages}))
    else:
        supported = (not kind or kind.startswith(M2M_TOKENIZERS)) and not tokenizer.get("legacy_behaviour")
    if not supported:
        raise InputError(
            f"{path}: tokenizer_class {kind or 'is missing'}: language tokens in other places are not supported "
            "(SMaLL-100, mBART-25, NLLB-200 with legacy_behaviour)"
        )


def _vocabulary(request: Request, rows: int) -> Tuple[Vocabulary, List[str], List[Path]]:
    """Returns vocabulary, language tokens and the files with them.

    Rows: fairseq's special symbols, pieces of one SentencePiece model, language tokens. Pieces are numbered by
    ``vocab.json`` if it exists, otherwise by the SentencePiece model.

    Raises:
        InputError: a file does not match the embeddings.
    """
    model, numbered = request.path / SENTENCEPIECE_MODEL, request.path / "vocab.json"
    files = [model]
    if numbered.is_file():
        ids: Dict[str, int] = dict(read_config(numbered))
        files.append(numbered)
    else:
        ids = {symbol: number for number, symbol in enumerate([*SPECIAL, *_pieces(model)])}
    if tuple(sorted(ids, key=lambda symbol: ids[symbol])[: len(SPECIAL)]) != SPECIAL:
        raise InputError(f"{files[-1]}: does not start with {' '.join(SPECIAL)}; it belongs to another model")
    tokens: List[str] = []
    for name in ("tokenizer.json", "added_tokens.json", TOKENIZER_CONFIG, "special_tokens_map.json"):
        path = request.path / name
        if path.is_file() and not tokens:
            added = dict(_added_tokens(name, read_config(path), len(ids)))
            tokens = [token for token in sorted(added, key=added.__getitem__) if token not in (*SPECIAL, MASK)]
            if tokens:
                ids.update(added)
                files.append(path)
    special = {symbol: number for number, symbol in enumerate(SPECIAL)}
    return Vocabulary.of_rows(symbols_by_row(ids, rows, files[-1]), special, files[-1]), tokens, files


def _pieces(model: Path) -> List[str]:
    """Returns the pieces of a SentencePiece model without its special symbols."""
    processor = load_subword_model(model)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    if tuple(pieces[: len(MODEL_SPECIAL)]) != MODEL_SPECIAL:
        raise InputError(f"{model}: does not start with {' '.join(MODEL_SPECIAL)}; it belongs to another model")
    return pieces[len(MODEL_SPECIAL) :]


def _added_tokens(name: str, content: Mapping[str, Any], pieces: int) -> Iterator[Tuple[str, int]]:
    """Yields the tokens after the pieces, with their rows."""
    if name == "added_tokens.json":
        found = list(content.items())
    elif name == "tokenizer.json":
        found = [(token["content"], token["id"]) for token in content.get("added_tokens", [])]
    elif content.get("added_tokens_decoder"):
        found = [(token["content"], int(number)) for number, token in content["added_tokens_decoder"].items()]
    else:
        listed = content.get("additional_special_tokens") or content.get("extra_special_tokens") or []
        contents = [token["content"] if isinstance(token, Mapping) else token for token in listed]
        found = [(token, pieces + n) for n, token in enumerate(t for t in contents if t not in (*SPECIAL, MASK))]
    yield from ((token, number) for token, number in found if number >= pieces)


# --- Export ---


def tokenizer_for(text: "HubText") -> str | None:
    """Returns the tokenizer of language tokens and vocabulary; None without one."""
    matching = (
        name for name, style in STYLES.items() if all(token and style.fullmatch(token) for token in text.tokens)
    )
    name = next(matching, None)
    if name in (None, M2M):
        return name
    expected = [*SPECIAL, *_pieces(text.models[1])]  # NLLB and mBART take the numbers from the SentencePiece model
    return name if text.vocabularies.symbols[1][: len(expected)] == expected else None


def write_tokenizer(text: "HubText", name: str, folder: Path) -> Dict[str, Any]:
    """Writes SentencePiece model, pieces and language tokens; returns the configuration of the tokenizer."""
    load_subword_model(text.models[1])
    copy_file(text.models[1], folder / SENTENCEPIECE_MODEL)
    tokens, ids = _language_tokens(text, name), text.vocabularies.ids(1)
    if name == M2M:
        pieces = {symbol: number for symbol, number in ids.items() if number < min(ids[token] for token in tokens)}
        write_json(folder / "vocab.json", pieces, indent=2, sort_keys=False)
    special = {"additional_special_tokens": tokens, "eos_token": "</s>"}
    write_json(folder / "special_tokens_map.json", special, indent=2)
    source, target = ((token or "").strip("_") if name == M2M else token for token in text.tokens)
    return {"src_lang": source, "tgt_lang": target}


def _language_tokens(text: "HubText", name: str) -> List[str]:
    return [symbol for symbol in text.vocabularies.symbols[1] if STYLES[name].fullmatch(symbol)]


def write_nllb(text: "HubText", folder: Path) -> None:
    """Writes ``tokenizer.json``; without it ``transformers`` would number the added tokens differently."""
    from transformers import NllbTokenizer

    tokens, path = _language_tokens(text, NLLB), folder / "tokenizer.json"
    NllbTokenizer.from_pretrained(folder, extra_special_tokens=tokens).save_pretrained(folder)
    content: Dict[str, Any] = read_json(path)
    ids = text.vocabularies.ids(1)
    ids.setdefault(MASK, ids.get(PARAGRAPH, len(ids)))  # import replaced <mask> by <p>
    for token in content["added_tokens"]:
        if token["content"] in ids:
            token["id"] = ids[token["content"]]
            if token["content"] not in SPECIAL:
                content["model"]["vocab"].pop(token["content"], None)
    content["added_tokens"].sort(key=lambda token: token["id"])
    write_json(path, content, indent=2, sort_keys=False)
