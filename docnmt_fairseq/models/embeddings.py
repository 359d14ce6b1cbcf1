"""Token embeddings of source and target."""

from dataclasses import dataclass
from typing import Any, Tuple

from fairseq.data import Dictionary
from fairseq.models.transformer import Embedding
from fairseq.tasks import FairseqTask
from torch import nn

from docnmt_fairseq.ca_layers.embeddings import ContextAwareEmbedding
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import Choices, option

TOKEN_EMBEDDINGS = Choices(("plain", "ca-em"))


@dataclass
class TokenEmbeddingOptions:
    """Kind of token embeddings."""

    token_embedding: str = option(
        "plain", "token embeddings; ca-em: an indicator, computed from a separate embedding, mixes each token's vector "
        "with one vector shared by all", names=TOKEN_EMBEDDINGS,
    )  # fmt: skip
    token_chi_dim: int = option(5, "ca-em: width of the indicator's embedding", minimum=1)


def token_embedding(cfg: TokenEmbeddingOptions, dictionary: Dictionary, width: int) -> nn.Embedding:
    """Embeddings of a dictionary, initialised like those of fairseq's Transformer."""
    plain = Embedding(len(dictionary), width, dictionary.pad())
    if str(cfg.token_embedding) == "plain":
        return plain
    sizes = (len(dictionary), width, cfg.token_chi_dim, dictionary.pad())
    mixed = ContextAwareEmbedding(*sizes, unknown=dictionary.unk())
    mixed.weight = plain.weight
    return mixed


def source_and_target_embeddings(cfg: Any, task: FairseqTask) -> Tuple[nn.Embedding, nn.Embedding]:
    """Embeddings of both sides, the same module with ``--share-all-embeddings``.

    Raises:
        InputError: ``--share-all-embeddings`` with different dictionaries or widths.
    """
    source, target, shared = task.source_dictionary, task.target_dictionary, cfg.share_all_embeddings
    if shared and (source != target or cfg.encoder_embed_dim != cfg.decoder_embed_dim):
        raise InputError(
            "--share-all-embeddings: needs one joined dictionary (fairseq-preprocess --joined-dictionary) and equal "
            "--encoder-embed-dim and --decoder-embed-dim"
        )
    of_source = token_embedding(cfg, source, cfg.encoder_embed_dim)
    return of_source, of_source if shared else token_embedding(cfg, target, cfg.decoder_embed_dim)
