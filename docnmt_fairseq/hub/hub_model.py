"""Sentence-level Transformers by the names of Hugging Face's transformers: class, configuration, tensors."""

from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub import layout
from docnmt_fairseq.hub.hub_text import HubVocabularies
from docnmt_fairseq.hub.layout import ACTIVATIONS, ARCHITECTURES, OUTPUT, SIDES, Architecture, layer_shapes
from docnmt_fairseq.hub.sentence_level import SentenceTransformer
from docnmt_fairseq.hub.vocabulary import BIAS

ENGINE = "Hugging Face's transformers"
BEAM = 5  # default of docnmt translate


class HubModel:
    """Model by the names of the hub.

    Args:
        transformer: model.
        path: checkpoint in error messages.

    Attributes:
        vocabularies: symbols in the order of the hub.
    """

    def __init__(self, transformer: SentenceTransformer, path: Path):
        self.transformer, self.path = transformer, path
        self.vocabularies = HubVocabularies.of(transformer)

    @cached_property
    def architecture(self) -> Architecture:
        """First architecture that computes the model.

        Raises:
            InputError: there is none.
        """
        properties = self._properties()
        for found in ARCHITECTURES:
            if {*found.properties} <= {*properties}:
                return found
        known = "; ".join(f"{one.name}: {', '.join(one.properties)}" for one in ARCHITECTURES)
        raise InputError(f"--path {self.path}: no class of {ENGINE} has {', '.join(properties)} ({known})")

    def _properties(self) -> List[str]:
        model, cfg = self.transformer.model, self.transformer.cfg
        pre = {bool(getattr(cfg, side).normalize_before) for side in SIDES}
        final = {getattr(model, side).layer_norm is not None for side in SIDES}
        normed = {getattr(model, side).layernorm_embedding is not None for side in SIDES}
        norms = layout.PRE if pre == {True} else layout.POST
        return [
            norms if pre == final and len(pre) == 1 else "layer norms of two kinds",
            layout.POSITIONS.get(self.transformer.position_kind, self.transformer.position_kind),
            layout.NORMED if normed == {True} else layout.NOT_NORMED if normed == {False} else "a norm on one side",
            layout.BIASED if self._bias().any() else layout.NOT_BIASED,
            layout.ONE_TABLE if self.vocabularies.shared and self._tied else layout.SEVERAL_TABLES,
            layout.START_PAD if self._starts_with_padding else layout.START_EOS,
        ]

    @cached_property
    def config(self) -> Dict[str, Any]:
        """Content of ``config.json``.

        Raises:
            InputError: encoder and decoder have different widths.
        """
        model, cfg, (source, target) = self.transformer.model, self.transformer.cfg, self.vocabularies.symbols
        kind, shared = self.architecture.kind, self.vocabularies.shared
        widths = {getattr(cfg, side).embed_dim for side in SIDES}
        if len(widths) > 1:
            raise InputError(f"--path: {ENGINE} needs one width for encoder and decoder, not {widths}")
        names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
        names["gelu_fast"] = names["gelu_accurate"]
        ids = self.vocabularies.ids(1)
        found = {
            "architectures": [self.architecture.name],
            "model_type": kind,
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
        if kind == "fsmt":
            found.update(src_vocab_size=len(source), tgt_vocab_size=len(target), langs=["src", "tgt"])
            found["tie_word_embeddings"] = shared and self._tied
        else:
            found["vocab_size"] = len(source)
        if kind == "marian":
            found.update(decoder_vocab_size=len(target), static_position_embeddings=True)
            found["share_encoder_decoder_embeddings"] = shared
        return found

    def generation_config(self) -> Dict[str, Any]:
        """Returns the content of ``generation_config.json``, without the language token of the target."""
        return {
            **{name: value for name, value in self.config.items() if name.endswith("_token_id")},
            "num_beams": BEAM,
            "early_stopping": True,
            "min_new_tokens": 1,
            "max_length": self.config["max_position_embeddings"],
            "bad_words_ids": [[self.config["pad_token_id"]]],
        }

    def tensors(self) -> Dict[str, Tensor]:
        """Returns the tensors of ``model.safetensors``, without copies of shared tables.

        Raises:
            InputError: the class has no place for a parameter.
        """
        kind = self.architecture.kind
        found = {f"model.{name}": value for name, value in self._layers()}
        found.update(self._embeddings())
        if kind in ("marian", "mbart"):
            found["final_logits_bias"] = self._bias()[None]
        for side in SIDES if kind == "mbart" else ():
            found[f"model.{side}.embed_positions.weight"] = self._positions(side)
        self.transformer.check_all_taken(ENGINE)
        return found

    def _layers(self) -> Iterator[Tuple[str, Tensor]]:
        for side in SIDES:
            for norm in ("layer_norm", "layernorm_embedding"):
                for name in (f"{side}.{norm}.{kind}" for kind in ("weight", "bias")):
                    if self.transformer.has(name):
                        yield name, self._tensor(name)
            for layer in self.transformer.layers(side):
                for part, _ in layer_shapes(side, 0, 0):
                    place = self.transformer.feed_forward(layer) if part.startswith("fc") else layer
                    yield f"{layer}.{part}", self._tensor(f"{place}.{part}")

    def _embeddings(self) -> Mapping[str, Tensor]:
        encoder, decoder = (self._rows(f"{side}.embed_tokens.weight", n) for n, side in enumerate(SIDES))
        output, tied = self._rows(OUTPUT, 1), self.config["tie_word_embeddings"]
        sides = {"model.encoder.embed_tokens.weight": encoder, "model.decoder.embed_tokens.weight": decoder}
        if self.architecture.kind == "fsmt":
            return {"model.decoder.embed_tokens.weight": decoder} if tied else {**sides, f"model.{OUTPUT}": output}
        own = {} if tied else {"lm_head.weight": output}
        return {**({"model.shared.weight": encoder} if self.vocabularies.shared else sides), **own}

    def _tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self.transformer.array(name))

    def _rows(self, name: str, side: int) -> Tensor:
        return self._tensor(name)[self.vocabularies.rows[side]]

    @cached_property
    def _tied(self) -> bool:
        """Whether the output projection is the target embedding table."""
        return bool(self._tensor(OUTPUT).equal(self._tensor("decoder.embed_tokens.weight")))

    def _bias(self) -> Tensor:
        """Returns the bias [V] of the logits; zeros without one."""
        return self._rows(BIAS, 1) if self.transformer.has(BIAS) else torch.zeros(len(self.vocabularies.rows[1]))

    def _positions(self, side: str) -> Tensor:
        """Returns a learned table with its unused first rows; the last row is repeated for the longer side."""
        name = f"{side}.embed_positions.weight"
        table = self._tensor(name if self.transformer.has(name) else f"{side}.embed_positions.word.weight")
        rows = self.config["max_position_embeddings"] + self.transformer.model.encoder.padding_idx + 1
        return torch.cat([table, table[-1:].expand(rows - len(table), -1)])

    @property
    def _starts_with_padding(self) -> bool:
        return bool(self.transformer.decoder_start == self.transformer.model.decoder.dictionary.pad())
