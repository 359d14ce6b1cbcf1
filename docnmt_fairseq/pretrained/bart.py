"""What Hugging Face's encoder-decoders have in common: the configuration and the tensors of BART's descendants.

Their layers have the names that fairseq's have, for they come from there; the configuration has others.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Type, TypeVar

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.pretrained.tensors import Tensors
from docnmt_fairseq.pretrained.vocabulary import Vocabulary, output_bias

ACTIVATIONS = {  # Hugging Face's names to ours
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_accurate",
    "gelu_pytorch_tanh": "gelu_accurate",
    "swish": "swish",
    "silu": "swish",
    "tanh": "tanh",
}
T = TypeVar("T")


@dataclass(frozen=True)
class Configuration:
    """``config.json``.

    Attributes:
        path: of the file.
        values: what it says.
    """

    path: Path
    values: Mapping[str, Any]

    def get(self, name: str, kind: Type[T], default: Optional[T] = None) -> T:
        """A value.

        Raises:
            InputError: it is missing and has no default, or is of another type.
        """
        value = self.values.get(name, default)
        if value is None:
            raise InputError(f"{self.path}: lacks {name}")
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(f"{self.path}: {name} is {value!r}, not of type {kind.__name__}")
        return value

    def refuse(self, name: str, supported: object, why: str) -> None:
        """Raises :class:`InputError` where a value is another than the one that there can be."""
        value = self.values.get(name, supported)
        if value != supported:
            raise InputError(f"{self.path}: {name} is {value!r}: {why}")

    @property
    def width(self) -> int:
        """Of the states."""
        return self.get("d_model", int)

    @property
    def tied(self) -> bool:
        """Whether the output projection is the target embeddings."""
        return self.get("tie_word_embeddings", bool, True)

    def structure(self) -> Dict[str, Any]:
        """The options of ``document_transformer`` that all these models have.

        Raises:
            InputError: an activation that there is not, a width that heads do not divide.
        """
        activation = self.get("activation_function", str)
        if activation not in ACTIVATIONS:
            raise InputError(f"{self.path}: activation_function {activation!r}: there are {', '.join(ACTIVATIONS)}")
        options: Dict[str, Any] = {"activation_fn": ACTIVATIONS[activation]}
        for side in ("encoder", "decoder"):
            heads = self.get(f"{side}_attention_heads", int)
            if heads < 1 or self.width % heads:
                raise InputError(f"{self.path}: {side}_attention_heads {heads} do not divide d_model {self.width}")
            options[f"{side}_embed_dim"] = self.width
            options[f"{side}_ffn_embed_dim"] = self.get(f"{side}_ffn_dim", int)
            options[f"{side}_layers"] = self.get(f"{side}_layers", int)
            options[f"{side}_attention_heads"] = heads
        options["no_scale_embedding"] = not self.get("scale_embedding", bool, False)
        return options


def layers_of(tensors: Tensors, structure: Mapping[str, Any]) -> Dict[str, Tensor]:
    """The tensors of all layers, by fairseq's names.

    Raises:
        InputError: one is missing, or of another shape than the configuration says.
    """
    state = {}
    for side in ("encoder", "decoder"):
        width, hidden = structure[f"{side}_embed_dim"], structure[f"{side}_ffn_embed_dim"]
        for layer in range(structure[f"{side}_layers"]):
            for part, shape in parts_of_layer(side, width, hidden):
                name = f"{side}.layers.{layer}.{part}"
                state[name] = tensors.take(f"model.{name}", shape)
    return state


def parts_of_layer(side: str, width: int, hidden: int) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    """The tensors of a layer and their shapes.

    Args:
        side: "encoder" or "decoder".
        width: of the states.
        hidden: of the feed-forward.
    """
    attentions = ["self_attn"] if side == "encoder" else ["self_attn", "encoder_attn"]
    linears = {
        f"{attention}.{part}_proj": (width, width) for attention in attentions for part in ("k", "v", "q", "out")
    }
    linears.update(fc1=(hidden, width), fc2=(width, hidden))
    for name, (out, into) in linears.items():
        yield f"{name}.weight", (out, into)
        yield f"{name}.bias", (out,)
    for norm in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
        yield f"{norm}.weight", (width,)
        yield f"{norm}.bias", (width,)


def norms_of(tensors: Tensors, width: int, *names: str) -> Dict[str, Tensor]:
    """Layer norms of both sides, such as ``layer_norm`` after the last layer."""
    return {
        f"{side}.{name}.{kind}": tensors.take(f"model.{side}.{name}.{kind}", (width,))
        for side in ("encoder", "decoder")
        for name in names
        for kind in ("weight", "bias")
    }


def shared_embeddings(tensors: Tensors, vocabulary: Vocabulary, width: int) -> Dict[str, Tensor]:
    """One table for source, target and output, and the bias of the logits if there is one."""
    tied = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    name = next(name for name in ("model.shared.weight", *tied) if name in tensors or name == tied[-1])
    table = vocabulary.ordered(tensors.take(name, (vocabulary.released, width)))
    tensors.leave("model.shared.weight", *tied)
    state = {f"{side}.embed_tokens.weight": table for side in ("encoder", "decoder")}
    state["decoder.output_projection.weight"] = table
    return {**state, **bias_of(tensors, vocabulary)}


def bias_of(tensors: Tensors, vocabulary: Vocabulary) -> Dict[str, Tensor]:
    """The bias of the logits, if the model needs one."""
    name, rows = "final_logits_bias", vocabulary.released
    released = tensors.take(name, (1, rows)) if name in tensors else None
    bias = output_bias(vocabulary, released)
    return {} if bias is None else {"decoder.output_projection.bias": bias}
