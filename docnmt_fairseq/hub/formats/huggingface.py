"""Format ``huggingface``: a sentence-level Transformer for Hugging Face's ``transformers``, with its tokenizer.

The inverse of ``docnmt import`` for MarianMT, M2M-100, NLLB-200 and mBART-50; FSMT for fairseq's post-norm models.
"""

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import json_bytes, write_bytes
from docnmt_fairseq.hub.exporting import EXPORT_FORMATS, ExportFormat, TrainedModel

if TYPE_CHECKING:
    from torch import Tensor

    from docnmt_fairseq.hub.hub_text import HubText, HubVocabularies
    from docnmt_fairseq.hub.layout import Architecture
    from docnmt_fairseq.hub.sentence_level import SentenceTransformer

ENGINE = "Hugging Face's transformers"
BEAM = 5  # default of docnmt translate
NO_TOKENIZER = "no tokenizer of transformers makes the tokens of this model: the folder has vocabularies only"
PROGRAM = """from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
found = model.generate(**tokenizer(["BEGINA sentence.", "BEGINAnother one."], return_tensors="pt", padding=True))
print([tokenizer.decode(one, skip_special_tokens=TrueDECODE) for one in found])
"""

logger = logging.getLogger(__name__)


@EXPORT_FORMATS.register("huggingface")
class HuggingFaceFolder(ExportFormat):
    """Folder for ``transformers``."""

    help = "folder for transformers, sentence-level models"

    def write(self, trained: TrainedModel, folder: Path, precision: str) -> None:
        """Writes configuration, tensors, vocabularies, tokenizer and page."""
        from docnmt_fairseq.hub.hub_text import HubVocabularies
        from docnmt_fairseq.hub.sentence_level import SentenceTransformer

        if precision == "int8":
            raise InputError("--precision int8: --format huggingface supports float32 and bf16")
        transformer = SentenceTransformer.of(trained, ENGINE)
        vocabularies = HubVocabularies.of(transformer)
        architecture = write_model(trained, transformer, vocabularies, folder, precision)
        write_text_files(trained, vocabularies, architecture, folder)


def write_model(
    trained: TrainedModel,
    transformer: "SentenceTransformer",
    vocabularies: "HubVocabularies",
    folder: Path,
    precision: str,
) -> "Architecture":
    """Writes configuration and tensors, and returns the architecture.

    Args:
        trained: trained model.
        transformer: its sentence-level Transformer.
        vocabularies: its symbols in the order of the hub.
        folder: existing folder.
        precision: float32 or bf16.

    Raises:
        InputError: no architecture computes the model; safetensors is missing.
    """
    import torch

    from docnmt_fairseq.corpus.data_bin import read_language_tokens
    from docnmt_fairseq.corpus.prepared import data_bin
    from docnmt_fairseq.hub.source import CONFIG
    from docnmt_fairseq.hub.tensors import MISSING_LIBRARY, SAFETENSORS

    try:
        from safetensors.torch import save
    except ImportError as error:
        raise InputError(f"--format huggingface: {MISSING_LIBRARY}") from error
    model = HubModel(transformer, vocabularies)
    architecture = model.architecture(trained.ensemble.paths[0])
    config = model.config(architecture)
    tensors = model.tensors(architecture, config)
    transformer.check_all_taken(ENGINE)
    if precision == "bf16":
        config["torch_dtype"] = "bfloat16"
    generation = {
        **{name: value for name, value in config.items() if name.endswith("_token_id")},
        "num_beams": BEAM,
        "early_stopping": True,
        "min_new_tokens": 1,
        "max_length": config["max_position_embeddings"],
        "bad_words_ids": [[config["pad_token_id"]]],
    }
    token = read_language_tokens(data_bin(trained.ensemble.data)).get(trained.ensemble.languages[1])
    if token is not None:
        generation["forced_bos_token_id"] = vocabularies.ids(1)[token]
    write_bytes(folder / CONFIG, json_bytes(config, indent=2, sort_keys=True))
    write_bytes(folder / "generation_config.json", json_bytes(generation, indent=2, sort_keys=True))
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    content = {name: value.to(kind).contiguous() for name, value in sorted(tensors.items())}
    write_bytes(folder / SAFETENSORS, save(content, metadata={"format": "pt"}))
    return architecture


@dataclass(frozen=True)
class HubModel:
    """Model by the names of the hub.

    Attributes:
        transformer: model.
        vocabularies: its symbols in the order of the hub.
    """

    transformer: "SentenceTransformer"
    vocabularies: "HubVocabularies"

    def architecture(self, path: Path) -> "Architecture":
        """Returns the first architecture that computes the model.

        Raises:
            InputError: there is none.
        """
        from docnmt_fairseq.hub.layout import ARCHITECTURES

        properties = self._properties()
        for found in ARCHITECTURES:
            if {*found.properties} <= {*properties}:
                return found
        known = "; ".join(f"{one.name}: {', '.join(one.properties)}" for one in ARCHITECTURES)
        raise InputError(f"--path {path}: no class of {ENGINE} has {', '.join(properties)} ({known})")

    def _properties(self) -> List[str]:
        from docnmt_fairseq.hub import layout

        model, cfg, sides = self.transformer.model, self.transformer.cfg, layout.SIDES
        pre = {bool(getattr(cfg, side).normalize_before) for side in sides}
        final = {getattr(model, side).layer_norm is not None for side in sides}
        normed = {getattr(model, side).layernorm_embedding is not None for side in sides}
        return [
            "layer norms of two kinds"
            if pre != final or len(pre) > 1
            else layout.PRE
            if pre == {True}
            else layout.POST,
            layout.POSITIONS.get(self.transformer.position_kind, self.transformer.position_kind),
            layout.NORMED if normed == {True} else layout.NOT_NORMED if normed == {False} else "a norm on one side",
            layout.BIASED if self._bias().any() else layout.NOT_BIASED,
            layout.ONE_TABLE if self.vocabularies.shared and self._tied else layout.SEVERAL_TABLES,
            layout.START_PAD if self._starts_with_padding else layout.START_EOS,
        ]

    def config(self, architecture: "Architecture") -> Dict[str, Any]:
        """Returns the content of ``config.json``."""
        from docnmt_fairseq.hub.layout import ACTIVATIONS, SIDES

        model, cfg, (source, target) = self.transformer.model, self.transformer.cfg, self.vocabularies.symbols
        widths = {getattr(cfg, side).embed_dim for side in SIDES}
        if len(widths) > 1:
            raise InputError(f"--path: {ENGINE} needs one width for encoder and decoder, not {widths}")
        names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
        names["gelu_fast"] = names["gelu_accurate"]
        if cfg.activation_fn not in names:
            raise InputError(f"--path: {ENGINE} does not support --activation-fn {cfg.activation_fn}")
        ids = self.vocabularies.ids(1)
        found = {
            "architectures": [architecture.name],
            "model_type": architecture.kind,
            "is_encoder_decoder": True,
            "activation_function": names[cfg.activation_fn],
            "d_model": int(widths.pop()),
            "scale_embedding": bool(model.decoder.embed_scale != 1.0),
            "max_position_embeddings": max(cfg.max_source_positions, cfg.max_target_positions),
            "tie_word_embeddings": self._tied,
            "eos_token_id": ids["</s>"],
            "pad_token_id": ids["<pad>"],
            "bos_token_id": ids.get("<s>"),
            "decoder_start_token_id": ids["<pad>" if self._starts_with_padding else "</s>"],
            "forced_eos_token_id": ids["</s>"],
            **{name: getattr(cfg, name) for name in ("dropout", "attention_dropout", "activation_dropout")},
        }
        for side in SIDES:
            part = getattr(cfg, side)
            found[f"{side}_layers"] = len(getattr(model, side).layers)
            found[f"{side}_ffn_dim"], found[f"{side}_attention_heads"] = part.ffn_embed_dim, part.attention_heads
            found[f"{side}_layerdrop"] = 0.0
        if architecture.kind == "fsmt":
            found.update(src_vocab_size=len(source), tgt_vocab_size=len(target), langs=["src", "tgt"])
            found["tie_word_embeddings"] = self.vocabularies.shared and self._tied
        else:
            found["vocab_size"] = len(source)
        if architecture.kind == "marian":
            found.update(decoder_vocab_size=len(target), static_position_embeddings=True)
            found["share_encoder_decoder_embeddings"] = self.vocabularies.shared
        return found

    def tensors(self, architecture: "Architecture", config: Mapping[str, Any]) -> Dict[str, "Tensor"]:
        """Returns the tensors of ``model.safetensors``, without copies of shared tables."""
        from docnmt_fairseq.hub.layout import SIDES

        found = {f"model.{name}": value for name, value in self._layers()}
        found.update(self._embeddings(architecture, config))
        if architecture.kind in ("marian", "mbart"):
            found["final_logits_bias"] = self._bias()[None]
        for side in SIDES if architecture.kind == "mbart" else ():
            table = self._positions(side, config["max_position_embeddings"])
            found[f"model.{side}.embed_positions.weight"] = table
        return found

    def _layers(self) -> Iterator[Tuple[str, "Tensor"]]:
        from docnmt_fairseq.hub.layout import SIDES, layer_shapes

        for side in SIDES:
            for norm in ("layer_norm", "layernorm_embedding"):
                for name in (f"{side}.{norm}.{kind}" for kind in ("weight", "bias")):
                    if self.transformer.has(name):
                        yield name, self._tensor(name)
            for layer in self.transformer.layers(side):
                for part, _ in layer_shapes(side, 0, 0):
                    place = self.transformer.feed_forward(layer) if part.startswith("fc") else layer
                    yield f"{layer}.{part}", self._tensor(f"{place}.{part}")

    def _embeddings(self, architecture: "Architecture", config: Mapping[str, Any]) -> Dict[str, "Tensor"]:
        from docnmt_fairseq.hub.layout import OUTPUT, SIDES

        encoder, decoder = (self._rows(f"{side}.embed_tokens.weight", n) for n, side in enumerate(SIDES))
        output, tied = self._rows(OUTPUT, 1), config["tie_word_embeddings"]
        sides = {"model.encoder.embed_tokens.weight": encoder, "model.decoder.embed_tokens.weight": decoder}
        if architecture.kind == "fsmt":
            own = {} if tied else {"model.encoder.embed_tokens.weight": encoder, f"model.{OUTPUT}": output}
            return {"model.decoder.embed_tokens.weight": decoder, **own}
        own = {} if tied else {"lm_head.weight": output}
        return {**({"model.shared.weight": encoder} if self.vocabularies.shared else sides), **own}

    def _tensor(self, name: str) -> "Tensor":
        import torch

        return torch.from_numpy(self.transformer.array(name))

    def _rows(self, name: str, side: int) -> "Tensor":
        return self._tensor(name)[self.vocabularies.rows[side]]

    @cached_property
    def _tied(self) -> bool:
        """Returns whether the output projection is the target embedding table."""
        from docnmt_fairseq.hub.layout import OUTPUT

        return bool(self._tensor(OUTPUT).equal(self._tensor("decoder.embed_tokens.weight")))

    def _bias(self) -> "Tensor":
        """Returns the bias [V] of the logits; zeros without one."""
        import torch

        from docnmt_fairseq.hub.vocabulary import BIAS

        return self._rows(BIAS, 1) if self.transformer.has(BIAS) else torch.zeros(len(self.vocabularies.rows[1]))

    def _positions(self, side: str, longest: int) -> "Tensor":
        """Returns a learned table with its unused first rows; the last row is repeated for the longer side."""
        import torch

        name = f"{side}.embed_positions.weight"
        table = self._tensor(name if self.transformer.has(name) else f"{side}.embed_positions.word.weight")
        offset = self.transformer.model.encoder.padding_idx + 1
        return torch.cat([table, table[-1:].expand(longest + offset - len(table), -1)])

    @property
    def _starts_with_padding(self) -> bool:
        return bool(self.transformer.decoder_start == self.transformer.model.decoder.dictionary.pad())


def tokenizer_of(text: "HubText") -> Optional[str]:
    """Returns the tokenizer of ``transformers`` with the steps of a text; None without one."""
    from docnmt_fairseq.corpus.subwords import WITH_CODES
    from docnmt_fairseq.hub.families import marian, multilingual

    options, (source, target) = text.codec.options, text.tokens
    other_steps = options["truecase"] or any(pipeline.tokenizer != "none" for pipeline in text.codec.pipelines)
    if other_steps or options["subwords"] in ("none", *WITH_CODES):
        return None
    if target is None:
        return marian.TOKENIZER if source is None or marian.CODE.fullmatch(source) else None
    return multilingual.tokenizer_for(text)


def write_text_files(
    trained: TrainedModel, vocabularies: "HubVocabularies", architecture: "Architecture", folder: Path
) -> None:
    """Writes vocabularies, tokenizer and page.

    Args:
        trained: trained model.
        vocabularies: its symbols in the order of the hub.
        architecture: architecture on the hub.
        folder: exported folder.

    Raises:
        InputError: a subword model, or ``transformers`` for NLLB, is missing.
    """
    from docnmt_fairseq.corpus.prepared import is_prepared
    from docnmt_fairseq.corpus.text_codec import TextCodec
    from docnmt_fairseq.hub.families import marian, multilingual
    from docnmt_fairseq.hub.hub_text import HubText, hub_symbol

    data = trained.ensemble.data
    source, target = ([hub_symbol(symbol) for symbol in symbols] for symbols in vocabularies.symbols)
    vocabularies = replace(vocabularies, symbols=(source, target))
    text = HubText(vocabularies, TextCodec.of_output(data)) if is_prepared(data) else None
    name = None if text is None else tokenizer_of(text)
    if name in (None, marian.TOKENIZER):
        for side, file in enumerate(["vocab.json"] if vocabularies.shared else ["vocab.json", "target_vocab.json"]):
            write_bytes(folder / file, json_bytes(vocabularies.ids(side), indent=2))
    lines = ["# Model for Hugging Face's transformers", "", f"Written by `docnmt export`: {architecture.name}."]
    if text is None or name is None:
        logger.warning(NO_TOKENIZER)
        lines.append("It has no tokenizer: the input consists of token ids of the vocabularies, followed by `</s>`.")
    else:
        write = multilingual.write_tokenizer if name != marian.TOKENIZER else None
        config = marian.write_tokenizer(text, folder) if write is None else write(text, name, folder)
        write_bytes(
            folder / "tokenizer_config.json", json_bytes({**config, "tokenizer_class": name}, indent=2, sort_keys=True)
        )
        if name == multilingual.NLLB:
            multilingual.write_nllb(text, folder)
        decode = ", use_source_tokenizer=False" if name == marian.TOKENIZER else ""
        begin = f"{text.tokens[0]} " if name == marian.TOKENIZER and text.tokens[0] else ""
        lines += ["", "```python", f"{PROGRAM.replace('DECODE', decode).replace('BEGIN', begin)}```"]
    write_bytes(folder / "README.md", ("\n".join(lines) + "\n").encode())
