"""The embeddings of tokens that models begin with, by option."""

from dataclasses import dataclass

from fairseq.data import Dictionary
from fairseq.models.transformer import Embedding
from torch import nn

from docnmt_fairseq.ca_layers.embedding import ContextAwareEmbedding
from docnmt_fairseq.models.extra_sources_config import ExtraSourceOptions
from docnmt_fairseq.options import Choices, option

TOKEN_EMBEDDINGS = Choices(("plain", "ca-em"))


@dataclass
class TokenEmbeddingOptions:
    """What a token's embedding is."""

    token_embedding: str = option(
        "plain", "embeddings of tokens: a vector each; ca-em: weighed against one vector of all by an indicator, of an "
        "embedding of its own", names=TOKEN_EMBEDDINGS,
    )  # fmt: skip
    token_chi_dim: int = option(5, "ca-em: width of the embedding that the indicator is computed from", minimum=1)


@dataclass
class SourceOptions(ExtraSourceOptions, TokenEmbeddingOptions):
    """What models read: the sources besides the sentence, and the embeddings of all."""


def token_embedding(cfg: TokenEmbeddingOptions, dictionary: Dictionary, width: int) -> nn.Embedding:
    """The embeddings of a dictionary's symbols, as fairseq's Transformer begins them."""
    plain = Embedding(len(dictionary), width, dictionary.pad())
    if str(cfg.token_embedding) == "plain":
        return plain
    sizes = (len(dictionary), width, cfg.token_chi_dim, dictionary.pad())
    mixed = ContextAwareEmbedding(*sizes, unknown=dictionary.unk())
    mixed.weight = plain.weight
    return mixed
