"""Configuration and tensor names of Hugging Face's encoder-decoders derived from BART, which has fairseq's layers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Type, TypeVar

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.source import CONFIG, Request
from docnmt_fairseq.hub.tensors import Tensors
from docnmt_fairseq.hub.vocabulary import BIAS, Vocabulary

ACTIVATIONS = {  # Hugging Face's name: fairseq's name
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_accurate",
    "gelu_pytorch_tanh": "gelu_accurate",
    "swish": "swish",
    "silu": "swish",
    "tanh": "tanh",
}
SIDES = ("encoder", "decoder")
OUTPUT = "decoder.output_projection.weight"
T = TypeVar("T")


@dataclass(frozen=True)
class Architecture:
    """Class of ``transformers`` and the properties of the models that it computes.

    Attributes:
        kind: ``model_type``.
        name: class.
        properties: required properties.
    """

    kind: str
    name: str
    properties: Tuple[str, ...]


# Properties that distinguish the architectures.
POST, PRE = "layer norms after sub-layers", "layer norms before sub-layers"
NORMED, NOT_NORMED = "a layer norm after the embeddings", "no layer norm after the embeddings"
BIASED, NOT_BIASED = "a bias of the logits", "no bias of the logits"
ONE_TABLE, SEVERAL_TABLES = "one embedding table", "several embedding tables"
START_PAD, START_EOS = "a decoder that starts with padding", "a decoder that starts with end of sentence"
POSITIONS = {"marian": "Marian's sinusoids", "fairseq": "fairseq's sinusoids", "learned": "learned positions"}
ARCHITECTURES = (
    Architecture("marian", "MarianMTModel", (POST, POSITIONS["marian"], NOT_NORMED)),
    Architecture(
        "fsmt", "FSMTForConditionalGeneration", (POST, POSITIONS["fairseq"], NOT_NORMED, NOT_BIASED, START_EOS)
    ),
    Architecture(
        "m2m_100",
        "M2M100ForConditionalGeneration",
        (PRE, POSITIONS["fairseq"], NOT_NORMED, NOT_BIASED, ONE_TABLE, START_EOS),
    ),
    Architecture("mbart", "MBartForConditionalGeneration", (PRE, POSITIONS["learned"], NORMED, ONE_TABLE, START_EOS)),
)


class Configuration:
    """Content of ``config.json``."""

    def __init__(self, request: Request):
        self.path: Path = request.path / CONFIG
        self.values: Mapping[str, Any] = request.config()

    def get(self, name: str, kind: Type[T], default: Optional[T] = None) -> T:
        """Returns a value.

        Raises:
            InputError: it is missing without a default, or has another type.
        """
        value = self.values.get(name, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(f"{self.path}: {name} is {value!r}, expected {kind.__name__}")
        return value

    def require(self, name: str, supported: object) -> None:
        """Raises :class:`InputError` if a value differs from the supported one."""
        value = self.values.get(name, supported)
        if value != supported:
            raise InputError(f"{self.path}: {name} is {value!r}; only {supported!r} is supported")

    @property
    def width(self) -> int:
        """Returns the width of the states."""
        return self.get("d_model", int)

    @property
    def tied(self) -> bool:
        """Returns whether the output projection is the target embedding table."""
        return self.get("tie_word_embeddings", bool, True)

    def options(self) -> Dict[str, Any]:
        """Returns the options of ``document_transformer`` that all these models have.

        Raises:
            InputError: an unknown activation function.
        """
        activation = self.get("activation_function", str)
        if activation not in ACTIVATIONS:
            raise InputError(f"{self.path}: activation_function {activation!r}; known are {', '.join(ACTIVATIONS)}")
        options: Dict[str, Any] = {"activation_fn": ACTIVATIONS[activation]}
        for side in SIDES:
            heads = self.get(f"{side}_attention_heads", int)
            if heads < 1 or self.width % heads:
                raise InputError(
                    f"{self.path}: d_model {self.width} is not divisible by {heads} {side}_attention_heads"
                )
            options[f"{side}_embed_dim"] = self.width
            options[f"{side}_ffn_embed_dim"] = self.get(f"{side}_ffn_dim", int)
            options[f"{side}_layers"] = self.get(f"{side}_layers", int)
            options[f"{side}_attention_heads"] = heads
        options["no_scale_embedding"] = not self.get("scale_embedding", bool, False)
        return options


def layer_shapes(side: str, width: int, hidden: int) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    """Yields name and shape of the tensors of a layer; fairseq and Hugging Face use the same names.

    Args:
        side: "encoder" or "decoder".
        width: width of the states.
        hidden: width of the feed-forward.
    """
    attentions = ["self_attn"] if side == "encoder" else ["self_attn", "encoder_attn"]
    linears = {f"{one}.{part}_proj": (width, width) for one in attentions for part in ("k", "v", "q", "out")}
    for name, (out, into) in {**linears, "fc1": (hidden, width), "fc2": (width, hidden)}.items():
        yield f"{name}.weight", (out, into)
        yield f"{name}.bias", (out,)
    for norm in (*(f"{one}_layer_norm" for one in attentions), "final_layer_norm"):
        yield f"{norm}.weight", (width,)
        yield f"{norm}.bias", (width,)


def read_layers(tensors: Tensors, options: Mapping[str, Any], norms: Tuple[str, ...] = ()) -> Dict[str, Tensor]:
    """Returns the tensors of all layers and of norms outside of them, by fairseq's names.

    Args:
        tensors: tensors of the model.
        options: options of ``document_transformer``.
        norms: names of layer norms of encoder and decoder.

    Raises:
        InputError: a tensor is missing or has another shape.
    """
    state = {}
    for side in SIDES:
        width, hidden = options[f"{side}_embed_dim"], options[f"{side}_ffn_embed_dim"]
        shapes = {
            f"{side}.layers.{layer}.{part}": shape
            for layer in range(options[f"{side}_layers"])
            for part, shape in layer_shapes(side, width, hidden)
        }
        shapes.update({f"{side}.{norm}.{kind}": (width,) for norm in norms for kind in ("weight", "bias")})
        state.update({name: tensors.take(f"model.{name}", shape) for name, shape in shapes.items()})
    return state


def read_shared_embeddings(tensors: Tensors, vocabulary: Vocabulary, width: int) -> Dict[str, Tensor]:
    """Returns the table of source, target and output, and the bias of the logits if there is one."""
    tied = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    name = next(name for name in ("model.shared.weight", *tied) if name in tensors or name == tied[-1])
    table = vocabulary.reorder(tensors.take(name, (vocabulary.imported_rows, width)))
    tensors.leave_out("model.shared.weight", *tied)
    state = {**{f"{side}.embed_tokens.weight": table for side in SIDES}, OUTPUT: table}
    return {**state, **read_bias(tensors, vocabulary)}


def read_bias(tensors: Tensors, vocabulary: Vocabulary) -> Dict[str, Tensor]:
    """Returns the bias of the logits, if there is one."""
    name = "final_logits_bias"
    bias = vocabulary.output_bias(tensors.take(name, (1, vocabulary.imported_rows)) if name in tensors else None)
    return {} if bias is None else {BIAS: bias}
