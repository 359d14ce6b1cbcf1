"""Options that all document models share, with the parts that they define, and flat dataclasses of options."""

from dataclasses import MISSING, Field, dataclass, field, fields, make_dataclass
from typing import Any, Dict, Iterable, Optional, Tuple, Type

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models.transformer import Embedding
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import nn

from docnmt_fairseq.ca_layers.decomposition import AlternatingUpdates
from docnmt_fairseq.ca_layers.embeddings import ContextAwareEmbedding
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.options import Choices, allowed_names, help_of, option


@dataclass
class TrainedViewOptions:
    """Document options of the training task, stored in checkpoints and restored at generation."""

    seed: int = II("common.seed")
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")
    context: Optional[str] = II("task.context")
    max_document_sentences: Optional[int] = II("task.max_document_sentences")
    max_document_tokens: Optional[int] = II("task.max_document_tokens")
    context_overlap: Optional[int] = II("task.context_overlap")
    context_overlap_after: Optional[int] = II("task.context_overlap_after")


@dataclass
class TokenEmbeddingOptions:
    """Kind of token embeddings."""

    token_embedding: str = option(
        "plain", "token embeddings; ca-em: an indicator, computed from a separate embedding, mixes each token's vector "
        "with one vector shared by all", names=Choices(("plain", "ca-em")),
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


@dataclass
class AlternatingOptions:
    """Alternating training of χ and the vectors of context-aware layers."""

    em_steps: int = option(
        0, "train the parameters of χ and the vectors that χ mixes alternately, this many updates each; 0: together. "
        "ca-rnn, whose χ has no separate parameters, is not affected", minimum=0,
    )  # fmt: skip


def alternate_updates(model: nn.Module, cfg: AlternatingOptions) -> None:
    """Adds alternating updates to a model if ``--em-steps`` is set."""
    if cfg.em_steps:
        model.alternating_updates = AlternatingUpdates(model, cfg.em_steps)


def flat_options(name: str, module: str, parts: Iterable[type]) -> Type[FairseqDataclass]:
    """Dataclass with the options of all parts, each once.

    (fairseq's command line does not support subclasses of nested configurations.)

    Args:
        name: name of the dataclass.
        module: module that defines it under this name.
        parts: dataclasses of options; several may inherit the same option, but not declare it differently.
    """
    known: Dict[str, Field[Any]] = {}
    for part in parts:
        for own in fields(part):
            first = known.setdefault(own.name, own)
            same = (first.type, first.default, first.metadata) == (own.type, own.default, own.metadata)
            assert same, f"{part.__qualname__} declares {own.name}, another option of this name exists"
    made = make_dataclass(name, list(map(_flat, known.values())), bases=(FairseqDataclass,))
    made.__module__ = module
    return made


def _flat(own: "Field[Any]") -> Tuple[str, Any, Any]:
    """Name, type and field for fairseq, with an enumeration as the type of a fixed set of names."""
    metadata = {key: value for key, value in own.metadata.items() if value is not None}
    if metadata.get("help"):
        metadata["help"] = help_of(own)
    kind: Any = own.type
    if isinstance(own.metadata.get("names"), Choices):
        choices = ChoiceEnum(allowed_names(own))
        kind = choices if own.type is str else Optional[choices]
    if own.default_factory is not MISSING:
        return own.name, kind, field(default_factory=own.default_factory, metadata=metadata)
    return own.name, kind, field(default=own.default, metadata=metadata)
