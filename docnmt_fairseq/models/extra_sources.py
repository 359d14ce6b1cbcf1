"""Extra sources besides the sentence to translate: their options, and encoders of their sentences or features."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Tuple

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from omegaconf import II
from torch import Tensor, nn

from docnmt_fairseq.batch.context_sentences import ContextSentences
from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.sources import (
    OfContextSentences,
    OfExtraSource,
    OfSeparateContext,
    SeparateContext,
    SeparateExtraSource,
    SourceKey,
)
from docnmt_fairseq.context.selected.base import zero_of
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, ExtraSourceInput, parse_specs
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.base import DocumentEncoder
from docnmt_fairseq.models.options import token_embedding
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, AttentionCombination, CombinationConfig
from docnmt_fairseq.multisource.packed import SourceStates
from docnmt_fairseq.options import Choices, option

SEPARATE, SHARED = "separate", "shared"
SENTINEL = "sentinel"  # name of the share of attention that goes to no source


@dataclass
class ExtraSourceOptions:
    """Encoders of the sources in ``--extra-sources``, an option of the task."""

    extra_encoder: str = option(
        SEPARATE, "encoder of extra sources: a separate one for each, sentence by sentence; or the encoder of the "
        "sentences, shared (context sentences are then not encoded twice)", names=Choices((SEPARATE, SHARED)),
    )  # fmt: skip
    extra_encoder_layers: int = option(0, "number of layers of separate encoders; 0: --encoder-layers", minimum=0)
    share_extra_embeddings: bool = option(
        False, "extra sources use the source's embeddings; texts then need the source's dictionary"
    )
    extra_feature_dims: List[int] = option(list, "widths of feature sources (default: taken from the data)")
    extra_sources: Optional[str] = II("task.extra_sources")  # stored in checkpoints, restored at generation


def attended_names(cfg: ExtraSourceOptions, sentinel: bool = False) -> Tuple[str, ...]:
    """Names of the shares of attention: the sources, the main one first, and the sentinel if there is one."""
    return ("source", *map(str, parse_specs(cfg.extra_sources)), *([SENTINEL] if sentinel else []))


def extra_inputs(cfg: ExtraSourceOptions, task: FairseqTask) -> List[ExtraSourceInput]:
    """Dictionaries and widths of the extra sources, from the task's data."""
    specs, widths = parse_specs(cfg.extra_sources), cfg.extra_feature_dims
    return task.extra_inputs(specs, widths) if specs else []


def attention_combination(cfg: Any, name: str, evidence_dim: int, **sizes: Any) -> AttentionCombination:
    """Attention of a decoder to all sources, by its options.

    Args:
        cfg: options of the model.
        name: name of the combination.
        evidence_dim: input width of the gate of a sentinel.
        sizes: widths, and options of ``document_rnn``, see :class:`CombinationConfig`.
    """
    config = CombinationConfig(
        **sizes,
        combination_attention=cfg.combination_attention,
        heads=cfg.decoder_attention_heads,
        dropout=cfg.attention_dropout,
        share_combination_projections=cfg.share_combination_projections,
        attention_sentinel=cfg.attention_sentinel,
        evidence_dim=evidence_dim if cfg.attention_sentinel else 0,
    )
    return ATTENTION_COMBINATIONS[name](config)


class SourceEncoder(nn.Module, ABC):
    """Contract of encoders of one extra source."""

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """Plans that ``forward`` uses; ``main``: plans of the main encoder."""
        return iter(())

    @abstractmethod
    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: DocumentEncoder) -> Tensor:
        """States [M, d_k], each sentence encoded independently.

        Args:
            values: [M] packed tokens of sentences, or [M, d_f] features.
            layout: layout of the sentences, each its own document; None for features.
            main: main encoder, which is not a submodule of this encoder.
        """


class SharedEncoder(SourceEncoder):
    """The main encoder's layers, with separate embeddings if ``embed_tokens`` is not None."""

    def __init__(self, embed_tokens: Optional[nn.Embedding]):
        super().__init__()
        self.embed_tokens = embed_tokens

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        return iter(main)

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: DocumentEncoder) -> Tensor:
        assert layout is not None
        return main.encode_tokens(values, layout, self.embed_tokens)


class FeatureEncoder(SourceEncoder):
    """LayerNorm(W f + b) of each row f of precomputed features, independent of their scale.

    Args:
        width: d_f.
        embed_dim: d.
        dropout: dropout of the result.
    """

    def __init__(self, width: int, embed_dim: int, dropout: float):
        super().__init__()
        self.projection = nn.Linear(width, embed_dim)
        self.layer_norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: DocumentEncoder) -> Tensor:
        return self.dropout(self.layer_norm(self.projection(values.to(self.projection.weight.dtype))))


class ExtraSources(nn.Module):
    """Encoders of all extra sources.

    Args:
        cfg: options of the model.
        inputs: the sources.
        dictionary: dictionary of the main source.
        width: width of the states.
        make_separate: builds a separate encoder with given embeddings (None: the main encoder's).

    Attributes:
        rows: keys of the plans that map decoded sentences to the states of each source.

    Raises:
        InputError: shared embeddings with different dictionaries.
    """

    def __init__(
        self,
        cfg: Any,
        inputs: Sequence[ExtraSourceInput],
        dictionary: Dictionary,
        width: int,
        make_separate: Callable[[Optional[nn.Embedding]], SourceEncoder],
    ):
        super().__init__()
        self.specs = [given.spec for given in inputs]
        self.context_keys = [
            ContextSentences(spec.contexts, spec.kind, cfg.seed) for spec in self.specs
        ]  # of the document
        self.encoders = nn.ModuleDict()  # by number; none for context sentences whose states the main encoder has
        self.rows: List[SourceKey] = []
        shared = str(cfg.extra_encoder) == SHARED
        for number, given in enumerate(inputs):
            if shared and given.spec.of_document:
                self.rows.append(OfContextSentences(self.context_keys[number]))
                continue
            of_document = given.spec.of_document
            self.rows.append(OfSeparateContext(self.context_keys[number]) if of_document else OfExtraSource(number))
            if given.dictionary is None:
                self.encoders[str(number)] = FeatureEncoder(given.width, width, cfg.dropout)
                continue
            embed_tokens = None
            if not cfg.share_extra_embeddings:
                embed_tokens = token_embedding(cfg, given.dictionary, cfg.encoder_embed_dim)
            elif given.dictionary != dictionary:
                raise InputError(
                    f"--share-extra-embeddings: {given.spec} does not have the source's dictionary; prepare the text "
                    "with it (docnmt prepare --extra)"
                )
            self.encoders[str(number)] = SharedEncoder(embed_tokens) if shared else make_separate(embed_tokens)

    def encoder_of(self, number: int) -> Optional[SourceEncoder]:
        """Encoder of a source; None if the states of the main encoder are used."""
        return dict(self.encoders.items()).get(str(number))  # type: ignore[return-value]

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """Plans that :meth:`encode` uses; ``main``: plans of the main encoder."""
        main = tuple(main)
        for number, spec in enumerate(self.specs):
            encoder = self.encoder_of(number)
            if encoder is not None and spec.of_document:
                yield SeparateContext(self.context_keys[number], tuple(encoder.plans(main)))
            elif encoder is not None and spec.kind == "text":
                yield SeparateExtraSource(number, tuple(encoder.plans(main)))
            yield self.rows[number]

    def encode(
        self,
        tokens: Tensor,
        layout: DocumentLayout,
        states: Tensor,
        extra_sources: Sequence[Optional[ExtraSourceBatch]],
        main: DocumentEncoder,
    ) -> List[SourceStates]:
        """States of every source.

        (Not ``forward``: module hooks, e.g. of fairseq's NaN detector, expect tensors.)

        Args:
            tokens: [N] packed tokens of all rows.
            layout: the batch.
            states: [N, d] final states of the main encoder.
            extra_sources: data of every source in the batch, None for sentences of the document.
            main: the main encoder.
        """
        encoded = []
        for number, spec in enumerate(self.specs):
            encoder = self.encoder_of(number)
            if encoder is None:
                encoded.append(SourceStates(states, self.rows[number]))
                continue
            given: Optional[Tuple[Tensor, Optional[DocumentLayout]]]
            if spec.of_document:
                apart = layout.plan(SeparateContext(self.context_keys[number]))
                given = None if apart is None else (tokens.index_select(0, apart.tokens), apart.layout)
            else:
                source = extra_sources[number]
                assert source is not None
                of_text = layout.plan(SeparateExtraSource(number)) if spec.kind == "text" else None
                given = (source.to(states.device).values, of_text) if len(source.values) else None
            if given is None:  # no sentence of the batch has this source
                of_source = states.new_zeros(1, states.size(1)) + zero_of(encoder)
            else:
                of_source = encoder(*given, main)
            encoded.append(SourceStates(of_source, self.rows[number]))
        return encoded
