"""The encoder-decoders of ``transformers`` that are Transformers as fairseq has them, and what tells them apart."""

from dataclasses import dataclass
from typing import List

POST, PRE, MIXED = "layer norms after sub-layers", "layer norms before sub-layers", "layer norms of two kinds"
NORMED, NOT_NORMED = "a layer norm after the embeddings", "no layer norm after the embeddings"
BIASED, NOT_BIASED = "a bias of the logits", "no bias of the logits"
ONE, SEVERAL = "one table of embeddings", "several tables of embeddings"
FROM_PAD, FROM_EOS = "a decoder that begins with the padding", "a decoder that begins with the end of sentence"
POSITIONS = {"marian": "Marian's sinusoids", "fairseq": "fairseq's sinusoids", "learned": "learned positions"}


@dataclass(frozen=True)
class Architecture:
    """An architecture of the hub.

    Attributes:
        kind: its ``model_type``.
        name: of the class.
        has: what a model must be like to be one.
    """

    kind: str
    name: str
    has: List[str]


ARCHITECTURES = (
    Architecture("marian", "MarianMTModel", [POST, POSITIONS["marian"], NOT_NORMED]),
    Architecture(
        "fsmt", "FSMTForConditionalGeneration", [POST, POSITIONS["fairseq"], NOT_NORMED, NOT_BIASED, FROM_EOS]
    ),
    Architecture(
        "m2m_100",
        "M2M100ForConditionalGeneration",
        [PRE, POSITIONS["fairseq"], NOT_NORMED, NOT_BIASED, ONE, FROM_EOS],
    ),
    Architecture("mbart", "MBartForConditionalGeneration", [PRE, POSITIONS["learned"], NORMED, ONE, FROM_EOS]),
)
