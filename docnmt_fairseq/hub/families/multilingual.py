"""M2M-100, NLLB-200 and mBART-50 of Hugging Face: pre-norm, one embedding table, language tokens on both sides.

M2M-100 and NLLB-200 can be expressed by fairseq's own ``transformer``; mBART-50 has learned positions and a layer norm
after the embeddings. Relatives with language tokens in other places are rejected, since they would translate wrongly:
SMaLL-100, NLLB-200 with ``legacy_behaviour``, mBART-25.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, Tuple

from torch import Tensor

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.subwords import SENTENCEPIECE, load_subword_model
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import copy_file, json_bytes, read_json, write_bytes
from docnmt_fairseq.hub.base import FAMILIES, Family, ImportedModel, TextModels
from docnmt_fairseq.hub.hub_text import NLLB_CODE
from docnmt_fairseq.hub.layout import SIDES, Configuration, read_layers, read_shared_embeddings
from docnmt_fairseq.hub.source import Request
from docnmt_fairseq.hub.source import read_json as read_config
from docnmt_fairseq.hub.tensors import Tensors
from docnmt_fairseq.hub.vocabulary import BIAS, MASK, SENTENCEPIECE_MODEL, SPECIAL, multilingual_vocabulary, pieces_of

if TYPE_CHECKING:
    from docnmt_fairseq.hub.hub_text import HubText

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
REQUIRED = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "tie_word_embeddings": True}
TOKENIZER_CONFIG, OFFSET = "tokenizer_config.json", 2  # offset: rows before the first learned position
M2M_TOKENIZERS = (M2M, NLLB, "PreTrainedTokenizer", "TokenizersBackend")
ONLY_IN_MBART_50 = {
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "gl_ES", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH", "mk_MK", "ml_IN", "mn_MN",
    "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sl_SI", "sv_SE", "sw_KE", "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK",
    "xh_ZA",
}  # fmt: skip


class MultilingualFamily(Family):
    """Common parts of the multilingual families.

    Class attributes:
        name: name of the family.
        own_options: options of ``document_transformer`` in addition to ``OPTIONS``.
        norms: layer norms of encoder and decoder outside of layers.
    """

    name = ""
    own_options: Dict[str, Any] = {}
    norms: Tuple[str, ...] = ("layer_norm",)

    def check_tokenizer(self, path: Path, tokenizer: Mapping[str, Any], languages: Sequence[str]) -> None:
        """Raises :class:`InputError` for relatives with language tokens in other places."""
        raise NotImplementedError

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """Returns learned position tables by fairseq's names."""
        raise NotImplementedError

    def read(self, request: Request) -> ImportedModel:
        """Returns the model."""
        config = Configuration(request)
        for name, value in REQUIRED.items():
            config.require(name, value)
        options = {**config.options(), **OPTIONS, **self.own_options}
        vocabulary, tokens, files = multilingual_vocabulary(request, config.get("vocab_size", int))
        by_language = {token.removeprefix("__").removesuffix("__"): token for token in tokens}
        path = request.path / TOKENIZER_CONFIG
        kind = {name: value for name, value in config.values.items() if name == "tokenizer_class" and value}
        self.check_tokenizer(path, {**kind, **(read_config(path) if path.is_file() else {})}, [*by_language])
        tensors = Tensors.of_folder(request.path)
        longest = config.get("max_position_embeddings", int)
        state = {
            **read_layers(tensors, options, self.norms),
            **read_shared_embeddings(tensors, vocabulary, config.width),
            **self.positions(tensors, longest, config.width),
        }
        tensors.check_all_taken()
        options["output_bias"] = BIAS in state
        model = request.file(SENTENCEPIECE_MODEL)
        language_tokens = (request.language_token(0, by_language), request.language_token(1, by_language))
        text = TextModels(SENTENCEPIECE, (model, model), language_tokens=language_tokens)
        files = [config.path, *files, *tensors.files]
        both, positions = (vocabulary, vocabulary), (longest, longest)
        return ImportedModel(self.name, options, state, both, text, positions, files, [*by_language])


@FAMILIES.register("m2m_100")
class M2M100(MultilingualFamily):
    """M2M-100 and NLLB-200."""

    name = "m2m_100"

    def check_tokenizer(self, path: Path, tokenizer: Mapping[str, Any], languages: Sequence[str]) -> None:
        """Rejects SMaLL-100 and ``legacy_behaviour``."""
        kind = str(tokenizer.get("tokenizer_class") or M2M)
        if not kind.startswith(M2M_TOKENIZERS):
            raise InputError(f"{path}: tokenizer_class {kind} is not supported (a relative such as SMaLL-100)")
        if tokenizer.get("legacy_behaviour"):
            raise InputError(f"{path}: legacy_behaviour (language tokens after the sentence) is not supported")

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """Returns no tables: sinusoids are computed; old checkpoints contain them."""
        tensors.leave_out(*(f"model.{side}.embed_positions.weights" for side in SIDES))
        return {}


@FAMILIES.register("mbart")
class MBart50(MultilingualFamily):
    """mBART-50."""

    name = "mbart"
    own_options = {"layernorm_embedding": True, "word_positions": "learned", "decoder_learned_pos": True}
    norms = ("layer_norm", "layernorm_embedding")

    def check_tokenizer(self, path: Path, tokenizer: Mapping[str, Any], languages: Sequence[str]) -> None:
        """Rejects mBART-25: mBART-50 is recognised by its tokenizer, or by a language that mBART-25 does not have."""
        kind = str(tokenizer.get("tokenizer_class") or "")
        if kind.startswith("MBartTokenizer") or not (kind.startswith(MBART) or ONLY_IN_MBART_50 & {*languages}):
            raise InputError(
                f"{path}: tokenizer_class {kind or 'is missing'}: mBART-25 (language tokens after the sentence) is not "
                f"supported; mBART-50 has {MBART}"
            )

    def positions(self, tensors: Tensors, rows: int, width: int) -> Dict[str, Tensor]:
        """Returns the learned tables of both sides."""
        names = [f"{side}.embed_positions.weight" for side in SIDES]
        return {name: tensors.take(f"model.{name}", (rows + OFFSET, width)) for name in names}


def tokenizer_for(text: "HubText") -> str | None:
    """Returns the tokenizer of language tokens and vocabulary; None without one."""
    matching = (
        name for name, style in STYLES.items() if all(token and style.fullmatch(token) for token in text.tokens)
    )
    name = next(matching, None)
    if name in (None, M2M):
        return name
    expected = [*SPECIAL, *pieces_of(text.models[1])]  # NLLB and mBART take the numbers from the SentencePiece model
    return name if text.vocabularies.symbols[1][: len(expected)] == expected else None


def language_tokens(text: "HubText", name: str) -> List[str]:
    """Returns all language tokens of the vocabulary."""
    return [symbol for symbol in text.vocabularies.symbols[1] if STYLES[name].fullmatch(symbol)]


def write_tokenizer(text: "HubText", name: str, folder: Path) -> Dict[str, Any]:
    """Writes SentencePiece model, pieces and language tokens; returns the configuration of the tokenizer."""
    load_subword_model(text.models[1])
    copy_file(text.models[1], folder / SENTENCEPIECE_MODEL)
    tokens, ids = language_tokens(text, name), text.vocabularies.ids(1)
    if name == M2M:
        pieces = {symbol: number for symbol, number in ids.items() if number < min(ids[token] for token in tokens)}
        write_bytes(folder / "vocab.json", json_bytes(pieces, indent=2))
    special = {"additional_special_tokens": tokens, "eos_token": "</s>"}
    write_bytes(folder / "special_tokens_map.json", json_bytes(special, indent=2, sort_keys=True))
    source, target = ((token or "").strip("_") if name == M2M else token for token in text.tokens)
    return {"src_lang": source, "tgt_lang": target}


def write_nllb(text: "HubText", folder: Path) -> None:
    """Writes ``tokenizer.json``; without it ``transformers`` would number the added tokens differently."""
    try:
        from transformers import NllbTokenizer
    except ImportError as error:
        raise InputError(
            "--format huggingface: NLLB's tokenizer needs transformers: pip install transformers"
        ) from error
    tokens, path = language_tokens(text, NLLB), folder / "tokenizer.json"
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
    write_bytes(path, json_bytes(content, indent=2))
