"""The tokenizer of an exported model, in the files of the hub, where a class of ``transformers`` does the same."""

import json
import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.corpus.prepared import is_prepared
from docnmt_fairseq.corpus.subwords import WITH_CODES, load_subword_model
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.export.huggingface_architectures import Architecture
from docnmt_fairseq.export.huggingface_vocabulary import HubVocabularies
from docnmt_fairseq.export.trained import TrainedModel
from docnmt_fairseq.files import copy_file, write_bytes
from docnmt_fairseq.pretrained.multilingual_vocabulary import OWN_SPECIAL, SENTENCEPIECE_MODEL, language_of
from docnmt_fairseq.pretrained.vocabulary import MASK, SPECIAL

MARIAN, M2M, NLLB, MBART = ("MarianTokenizer", "M2M100Tokenizer", "NllbTokenizer", "MBart50Tokenizer")
# What language tokens look like, and whose they are.
STYLES = {
    M2M: re.compile(r"__[a-z]{2,3}__"),
    NLLB: re.compile(r"[a-z]{3}_[A-Z][a-z]{3}"),
    MBART: re.compile(r"[a-z]{2}_[A-Z]{2}"),
}
OF_FAIRSEQ = re.compile(rf"__({STYLES[NLLB].pattern})__")  # what fairseq's NLLB-200 has for the same
OF_MARIAN = re.compile(r">>.+<<")  # its tokenizer divides others
CONFIGURATION = "tokenizer_config.json"
PROGRAM = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
found = model.generate(**tokenizer(["BEGINA sentence.", "BEGINAnother one."], return_tensors="pt", padding=True))
print([tokenizer.decode(one, skip_special_tokens=TrueDECODE) for one in found])
"""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class HubText:
    """How the text of a model becomes the symbols of its vocabularies.

    Attributes:
        vocabularies: in the hub's order, language tokens as the hub writes them.
        codec: of the data that the model was trained on.
    """

    vocabularies: HubVocabularies
    codec: TextCodec

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.codec.languages

    @property
    def models(self) -> List[Path]:
        """The SentencePiece models of source and target."""
        return [self.codec.data / "models" / str(pipeline.subword_file) for pipeline in self.codec.pipelines]

    @property
    def tokens(self) -> Tuple[Optional[str], Optional[str]]:
        """What sentences of source and target begin with."""
        source, target = (pipeline.language_token for pipeline in self.codec.pipelines)
        return source and _on_the_hub(source), target and _on_the_hub(target)

    def tokenizer(self) -> Optional[str]:
        """The class that does the same; None: there is none."""
        options = self.codec.options
        if (
            options["truecase"]
            or any(pipeline.tokenizer != "none" for pipeline in self.codec.pipelines)
            or options["subwords"] in ("none", *WITH_CODES)
        ):
            return None
        source, target = self.tokens
        if target is None:
            return MARIAN if source is None or OF_MARIAN.fullmatch(source) else None
        known = (name for name, style in STYLES.items() if source and all(map(style.fullmatch, (source, target))))
        name = next(known, None)
        return name if name == M2M or (name is not None and self._numbered_by_model()) else None

    def language_tokens(self, name: str) -> List[str]:
        """All language tokens of a multilingual vocabulary."""
        return [symbol for symbol in self.vocabularies.symbols[1] if STYLES[name].fullmatch(symbol)]

    def pieces(self, name: str) -> Dict[str, int]:
        """The numbers of the symbols before the language tokens."""
        first = min(map(self.vocabularies.symbols[1].index, self.language_tokens(name)))
        return {symbol: number for symbol, number in self.vocabularies.ids(1).items() if number < first}

    def _numbered_by_model(self) -> bool:
        """Whether the vocabulary has the order of the SentencePiece model, from which NLLB's and mBART's take it."""
        processor = load_subword_model(self.models[1])
        pieces = [processor.id_to_piece(number) for number in range(OWN_SPECIAL, processor.get_piece_size())]
        expected = [*SPECIAL, *pieces]
        return self.vocabularies.symbols[1][: len(expected)] == expected


def write_text_files(
    trained: TrainedModel, vocabularies: HubVocabularies, architecture: Architecture, folder: Path
) -> None:
    """Writes vocabulary and tokenizer, and a page that says how to translate.

    Args:
        trained: the model.
        vocabularies: of it, in the hub's order.
        architecture: what the model is on the hub.
        folder: of the exported model.

    Raises:
        InputError: a subword model is missing; ``transformers``, which NLLB's tokenizer is made by, is.
    """
    data = trained.ensemble.data
    source, target = ([_on_the_hub(symbol) for symbol in symbols] for symbols in vocabularies.symbols)
    vocabularies = replace(vocabularies, symbols=(source, target))
    text = HubText(vocabularies, TextCodec.of_output(data)) if is_prepared(data) else None
    name = None if text is None else text.tokenizer()
    if text is None or name is None:
        _write_vocabularies(vocabularies, folder)
        logger.warning(
            "no class of transformers makes tokens as this model's data was made: the folder has vocabularies and no "
            "tokenizer; give it the token numbers of text as docnmt prepare divides it"
        )
    elif name == MARIAN:
        _write_marian(text, folder)
    else:
        _write_multilingual(text, name, folder)
    begin = f"{text.tokens[0]} " if text is not None and name == MARIAN and text.tokens[0] else ""
    _write_page(architecture, name, folder, begin)


def _on_the_hub(symbol: str) -> str:
    """A symbol as the hub has it: NLLB's language tokens without the underscores that fairseq's have."""
    return OF_FAIRSEQ.sub(r"\1", symbol)


def _write_vocabularies(vocabularies: HubVocabularies, folder: Path) -> None:
    for side, name in enumerate(["vocab.json"] if vocabularies.shared else ["vocab.json", "target_vocab.json"]):
        _write_json(folder / name, vocabularies.ids(side), sort=False)


def _write_marian(text: HubText, folder: Path) -> None:
    _write_vocabularies(text.vocabularies, folder)
    for model, side in zip(text.models, ("source", "target")):
        load_subword_model(model)
        copy_file(model, folder / f"{side}.spm")
    source, target = text.languages
    separate = not text.vocabularies.shared
    about = {"source_lang": source, "target_lang": target, "separate_vocabs": separate, "model_max_length": 512}
    _write_configuration(folder, MARIAN, about)


def _write_multilingual(text: HubText, name: str, folder: Path) -> None:
    """The SentencePiece model and the language tokens, in their order."""
    load_subword_model(text.models[1])
    copy_file(text.models[1], folder / SENTENCEPIECE_MODEL)
    tokens = text.language_tokens(name)
    if name == M2M:
        _write_json(folder / "vocab.json", text.pieces(name), sort=False)
    special = {"additional_special_tokens": tokens, "eos_token": "</s>"}
    _write_json(folder / "special_tokens_map.json", special)
    own = [token if name != M2M else language_of(token) for token in text.tokens if token is not None]
    _write_configuration(folder, name, {"src_lang": own[0], "tgt_lang": own[1]})
    if name == NLLB:
        _write_nllb(text, tokens, folder)


def _write_nllb(text: HubText, tokens: List[str], folder: Path) -> None:
    """``tokenizer.json``: from the other files alone, what is no piece would get other numbers."""
    try:
        from transformers import NllbTokenizer
    except ImportError as error:
        raise InputError(
            "--format huggingface: NLLB's tokenizer is made by transformers: pip install transformers"
        ) from error
    NllbTokenizer.from_pretrained(folder, extra_special_tokens=tokens).save_pretrained(folder)
    path = folder / "tokenizer.json"
    content: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    ids = text.vocabularies.ids(1)
    ids.setdefault(MASK, ids.get(PARAGRAPH, len(ids)))  # whose place the paragraph mark took
    for token in content["added_tokens"]:
        if token["content"] in ids:
            token["id"] = ids[token["content"]]
            if token["content"] not in SPECIAL:
                content["model"]["vocab"].pop(token["content"], None)
    content["added_tokens"].sort(key=lambda token: token["id"])
    _write_json(path, content, sort=False)


def _write_configuration(folder: Path, name: str, values: Dict[str, Any]) -> None:
    _write_json(folder / CONFIGURATION, {**values, "tokenizer_class": name})


def _write_page(architecture: Architecture, name: Optional[str], folder: Path, begin: str) -> None:
    """Writes the page; ``begin`` is what MarianMT's text begins with."""
    lines = ["# A model of Hugging Face's transformers", "", f"Written by `docnmt export`: {architecture.name}."]
    if name is None:
        lines.append("There is no tokenizer: the numbers of tokens, with `</s>` behind them, are in the vocabularies.")
    else:
        decode = ", use_source_tokenizer=False" if name == MARIAN else ""
        program = PROGRAM.replace("DECODE", decode).replace("BEGIN", begin)
        lines += ["With this folder as FOLDER:", "", "```python", f"{program}```"]
    write_bytes(folder / "README.md", ("\n".join(lines) + "\n").encode())


def _write_json(path: Path, content: Dict[str, Any], sort: bool = True) -> None:
    text = json.dumps(content, indent=2, sort_keys=sort, ensure_ascii=False)
    write_bytes(path, f"{text}\n".encode())
