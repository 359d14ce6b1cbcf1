"""A sentence-level Transformer as ``transformers`` reads it: configuration and tensors; the inverse of the import."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.corpus.data_bin import read_language_tokens
from docnmt_fairseq.corpus.prepared import data_bin
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.export.huggingface_architectures import (
    ARCHITECTURES,
    BIASED,
    FROM_EOS,
    FROM_PAD,
    MIXED,
    NORMED,
    NOT_BIASED,
    NOT_NORMED,
    ONE,
    POSITIONS,
    POST,
    PRE,
    SEVERAL,
    Architecture,
)
from docnmt_fairseq.export.huggingface_vocabulary import BIAS, HubVocabularies
from docnmt_fairseq.export.sentence_level import SIDES, SentenceTransformer
from docnmt_fairseq.export.trained import TrainedModel
from docnmt_fairseq.files import write_bytes
from docnmt_fairseq.layers.rounding import BF16, INT8
from docnmt_fairseq.pretrained.bart import ACTIVATIONS, parts_of_layer
from docnmt_fairseq.pretrained.released import CONFIGURATION
from docnmt_fairseq.pretrained.tensors import MISSING_LIBRARY, SAFETENSORS

ENGINE = "Hugging Face's transformers"
GENERATION = "generation_config.json"
OUTPUT = "decoder.output_projection.weight"
NORM = ("weight", "bias")
BEAM = 5  # as docnmt translate


def write_model(
    trained: TrainedModel,
    transformer: SentenceTransformer,
    vocabularies: HubVocabularies,
    folder: Path,
    precision: str,
) -> Architecture:
    """Writes configurations and tensors; returns what the model is on the hub.

    Args:
        trained: where the model is from.
        transformer: the model.
        vocabularies: its symbols in the hub's order.
        folder: is there.
        precision: of ``PRECISIONS``.

    Raises:
        InputError: no architecture there computes this; safetensors is not installed; int8.
    """
    if precision == INT8:
        raise InputError(f"--precision {INT8}: {ENGINE} has no such files; float32 and bf16 can be written")
    hub = HubModel(transformer, vocabularies)
    architecture = hub.architecture(trained.ensemble.paths[0])
    configuration = hub.configuration(architecture)
    if precision == BF16:
        configuration["torch_dtype"] = "bfloat16"
    tensors = hub.tensors(architecture, configuration)
    transformer.check_all_taken(ENGINE)
    numbered = {name: configuration[name] for name in configuration if name.endswith("_token_id")}
    generation = {**numbered, **hub.search(configuration, trained)}
    for name, content in ((CONFIGURATION, configuration), (GENERATION, generation)):
        write_bytes(folder / name, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())
    _write_tensors(tensors, folder / SAFETENSORS, precision)
    return architecture


@dataclass(frozen=True)
class HubModel:
    """The model by the hub's names.

    Attributes:
        transformer: the model.
        vocabularies: its symbols in the hub's order.
    """

    transformer: SentenceTransformer
    vocabularies: HubVocabularies

    def architecture(self, path: Path) -> Architecture:
        """The first architecture that computes what the model does.

        Raises:
            InputError: there is none.
        """
        properties = self._properties()
        for found in ARCHITECTURES:
            if set(found.has) <= set(properties):
                return found
        known = "; ".join(f"{one.name}: {', '.join(one.has)}" for one in ARCHITECTURES)
        raise InputError(
            f"--path {path}: has {', '.join(properties)}, which no class of {ENGINE} has together ({known})"
        )

    def _properties(self) -> List[str]:
        model, cfg = self.transformer.model, self.transformer.cfg
        before = {bool(getattr(cfg, side).normalize_before) for side in SIDES}
        last = {getattr(model, side).layer_norm is not None for side in SIDES}
        normed = {getattr(model, side).layernorm_embedding is not None for side in SIDES}
        positions = self.transformer.sinusoids
        return [
            MIXED if before != last or len(before) > 1 else PRE if before == {True} else POST,
            POSITIONS.get(positions, positions),
            NORMED if normed == {True} else NOT_NORMED if normed == {False} else "a layer norm after some embeddings",
            BIASED if self._bias().any() else NOT_BIASED,
            ONE if self.vocabularies.shared and self._tied else SEVERAL,
            FROM_PAD if self._starts_with_padding() else FROM_EOS,
        ]

    def configuration(self, architecture: Architecture) -> Dict[str, Any]:
        """``config.json``."""
        cfg, (source, target) = self.transformer.cfg, self.vocabularies.symbols
        ids = self.vocabularies.ids(1)
        found = {
            "architectures": [architecture.name],
            "model_type": architecture.kind,
            "is_encoder_decoder": True,
            "activation_function": self._activation(),
            "d_model": self._width(),
            "scale_embedding": bool(self.transformer.model.decoder.embed_scale != 1.0),
            "max_position_embeddings": max(cfg.max_source_positions, cfg.max_target_positions),
            "tie_word_embeddings": self._tied,
            "eos_token_id": ids["</s>"],
            "pad_token_id": ids["<pad>"],
            "bos_token_id": ids.get("<s>"),
            "decoder_start_token_id": ids["<pad>" if self._starts_with_padding() else "</s>"],
            "forced_eos_token_id": ids["</s>"],
            **{name: getattr(cfg, name) for name in ("dropout", "attention_dropout", "activation_dropout")},
        }
        for side in SIDES:
            of_side = getattr(cfg, side)
            found[f"{side}_layers"] = len(getattr(self.transformer.model, side).layers)
            found[f"{side}_ffn_dim"], found[f"{side}_attention_heads"] = of_side.ffn_embed_dim, of_side.attention_heads
            found[f"{side}_layerdrop"] = 0.0
        if architecture.kind == "fsmt":
            found.update(src_vocab_size=len(source), tgt_vocab_size=len(target), langs=["src", "tgt"])
            found["tie_word_embeddings"] = self.vocabularies.shared and self._tied
        else:
            found["vocab_size"] = len(source)
        if architecture.kind == "marian":
            found.update(
                decoder_vocab_size=len(target), share_encoder_decoder_embeddings=self.vocabularies.shared,
                static_position_embeddings=True,
            )  # fmt: skip
        return found

    def search(self, configuration: Mapping[str, Any], trained: TrainedModel) -> Dict[str, Any]:
        """How ``generate`` searches: as ``docnmt translate`` does."""
        found: Dict[str, Any] = {
            "num_beams": BEAM,
            "early_stopping": True,
            "min_new_tokens": 1,  # no empty translations
            "max_length": configuration["max_position_embeddings"],
            "bad_words_ids": [[configuration["pad_token_id"]]],
        }
        token = read_language_tokens(data_bin(trained.ensemble.data)).get(trained.ensemble.languages[1])
        if token is not None:
            found["forced_bos_token_id"] = self.vocabularies.ids(1)[token]
        return found

    def tensors(self, architecture: Architecture, configuration: Mapping[str, Any]) -> Dict[str, Tensor]:
        """All that ``model.safetensors`` holds, copies of shared tables left out."""
        found = {f"model.{name}": value for name, value in self._layers()}
        found.update(self._embeddings(architecture, configuration))
        if architecture.kind in ("marian", "mbart"):
            found["final_logits_bias"] = self._bias()[None]
        for side in SIDES if architecture.kind == "mbart" else ():
            found[f"model.{side}.embed_positions.weight"] = self._positions(
                side, configuration["max_position_embeddings"]
            )
        return found

    def _layers(self) -> Iterator[Tuple[str, Tensor]]:
        """Names as the hub has them, and tensors, of layers and of norms before and after them."""
        for side in SIDES:
            norms = [f"{side}.{norm}.{kind}" for norm in ("layer_norm", "layernorm_embedding") for kind in NORM]
            yield from ((name, self._tensor(name)) for name in norms if self.transformer.has(name))
            for layer in self.transformer.layers(side):
                for part, _ in parts_of_layer(side, 0, 0):
                    place = self.transformer.feed_forward(layer) if part.startswith("fc") else layer
                    yield f"{layer}.{part}", self._tensor(f"{place}.{part}")

    def _embeddings(self, architecture: Architecture, configuration: Mapping[str, Any]) -> Dict[str, Tensor]:
        encoder, decoder = (self._rows(f"{side}.embed_tokens.weight", n) for n, side in enumerate(SIDES))
        output = self._rows(OUTPUT, 1)
        if architecture.kind == "fsmt":
            tables = {"model.decoder.embed_tokens.weight": decoder}
            if not configuration["tie_word_embeddings"]:
                tables.update({"model.encoder.embed_tokens.weight": encoder, f"model.{OUTPUT}": output})
            return tables
        own = {} if configuration["tie_word_embeddings"] else {"lm_head.weight": output}
        if self.vocabularies.shared:
            return {"model.shared.weight": encoder, **own}
        return {"model.encoder.embed_tokens.weight": encoder, "model.decoder.embed_tokens.weight": decoder, **own}

    def _tensor(self, *names: str) -> Tensor:
        return torch.from_numpy(self.transformer.array(*names))

    def _rows(self, name: str, side: int) -> Tensor:
        return self._tensor(name)[self.vocabularies.rows[side]]

    @cached_property
    def _tied(self) -> bool:
        """Whether the output projection is the target embeddings."""
        return np.array_equal(self.transformer.array(OUTPUT), self.transformer.array("decoder.embed_tokens.weight"))

    def _bias(self) -> Tensor:
        """[V] of the logits; zeros: the model has none."""
        rows = self.vocabularies.rows[1]
        return self._rows(BIAS, 1) if self.transformer.has(BIAS) else torch.zeros(len(rows))

    def _positions(self, side: str, longest: int) -> Tensor:
        """A learned table with its unused rows; those that another side has more are its last."""
        name = f"{side}.embed_positions.weight"
        table = self._tensor(name if self.transformer.has(name) else f"{side}.embed_positions.word.weight")
        offset = self.transformer.model.encoder.padding_idx + 1
        return torch.cat([table, table[-1:].expand(longest + offset - len(table), -1)])

    def _starts_with_padding(self) -> bool:
        return self.transformer.decoder_start == self.transformer.model.decoder.dictionary.pad()

    def _activation(self) -> str:
        ours = {name: hub for hub, name in reversed(ACTIVATIONS.items())}
        ours["gelu_fast"] = ours["gelu_accurate"]  # fairseq's former name
        activation = self.transformer.cfg.activation_fn
        if activation not in ours:
            raise InputError(
                f"--path: --activation-fn {activation}, which {ENGINE} does not know; it has {', '.join(ours)}"
            )
        return ours[activation]

    def _width(self) -> int:
        widths = [getattr(self.transformer.cfg, side).embed_dim for side in SIDES]
        if widths[0] != widths[1]:
            raise InputError(
                f"--path: encoder and decoder are {widths[0]} and {widths[1]} wide; {ENGINE} has one width"
            )
        return int(widths[0])


def _write_tensors(tensors: Dict[str, Tensor], path: Path, precision: str) -> None:
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise InputError(f"--format huggingface: {MISSING_LIBRARY}") from error
    kind = torch.bfloat16 if precision == BF16 else torch.float32
    held = {name: value.to(kind).contiguous() for name, value in sorted(tensors.items())}
    write_bytes(path, save(held, metadata={"format": "pt"}))
