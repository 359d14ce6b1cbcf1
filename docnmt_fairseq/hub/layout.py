"""Configuration and tensor names of Hugging Face's encoder-decoders derived from BART, which has fairseq's layers."""

from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Tuple

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.hub.base import CONFIG, read_json
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


class Architecture(NamedTuple):
    """``model_type`` and class of ``transformers``, and the properties of the models that it computes."""

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
MARIAN, FAIRSEQ, LEARNED = POSITIONS.values()
ARCHITECTURES = (
    Architecture("marian", "MarianMTModel", (POST, MARIAN, NOT_NORMED)),
    Architecture("fsmt", "FSMTForConditionalGeneration", (POST, FAIRSEQ, NOT_NORMED, NOT_BIASED, START_EOS)),
    Architecture(
        "m2m_100", "M2M100ForConditionalGeneration", (PRE, FAIRSEQ, NOT_NORMED, NOT_BIASED, ONE_TABLE, START_EOS)
    ),
    Architecture("mbart", "MBartForConditionalGeneration", (PRE, LEARNED, NORMED, ONE_TABLE, START_EOS)),
)


class Configuration(Dict[str, Any]):
    """Content of ``config.json`` in a folder."""

    def __init__(self, folder: Path):
        self.path = folder / CONFIG
        super().__init__(read_json(self.path))

    def require(self, values: Mapping[str, object]) -> None:
        """Raises :class:`InputError` if a value differs from the supported one."""
        for name, supported in values.items():
            if self.get(name, supported) != supported:
                raise InputError(f"{self.path}: {name} is {self[name]!r}; only {supported!r} is supported")

    @property
    def tied(self) -> bool:
        """Returns whether the output projection is the target embedding table."""
        return bool(self.get("tie_word_embeddings", True))

    def options(self) -> Dict[str, Any]:
        """Returns the options of ``document_transformer`` that all these models have."""
        options: Dict[str, Any] = {"activation_fn": ACTIVATIONS[self["activation_function"]]}
        for side in SIDES:
            options[f"{side}_embed_dim"] = self["d_model"]
            options[f"{side}_ffn_embed_dim"] = self[f"{side}_ffn_dim"]
            options[f"{side}_layers"] = self[f"{side}_layers"]
            options[f"{side}_attention_heads"] = self[f"{side}_attention_heads"]
        options["no_scale_embedding"] = not self.get("scale_embedding", False)
        return options


def layer_shapes(side: str, width: int, hidden: int) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    """Yields name and shape of the tensors of a layer; fairseq and Hugging Face use the same names."""
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

    Raises:
        InputError: a tensor is missing or has another shape than according to the options.
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
    copies = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    name = next((name for name in ("model.shared.weight", *copies) if name in tensors), copies[-1])
    table = vocabulary.reorder(tensors.take(name, (vocabulary.imported_rows, width)))
    tensors.leave_out("model.shared.weight", *copies)
    state = {**{f"{side}.embed_tokens.weight": table for side in SIDES}, OUTPUT: table}
    return {**state, **read_bias(tensors, vocabulary)}


def read_bias(tensors: Tensors, vocabulary: Vocabulary) -> Dict[str, Tensor]:
    """Returns the bias of the logits, if there is one."""
    name = "final_logits_bias"
    bias = vocabulary.output_bias(tensors.take(name, (1, vocabulary.imported_rows)) if name in tensors else None)
    return {} if bias is None else {BIAS: bias}
