"""Extra sources besides the sentence to translate: their options, and encoders of their sentences or features."""

from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple

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
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, ExtraSourceInput, SourceSpec, lengths_of, parse_specs
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.embeddings import TokenEmbeddingOptions, token_embedding
from docnmt_fairseq.models.encoder_outputs import SENTINEL
from docnmt_fairseq.multisource.packed import SourceStates
from docnmt_fairseq.options import Choices, option

SEPARATE, SHARED = "separate", "shared"


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


@dataclass
class SourceOptions(ExtraSourceOptions, TokenEmbeddingOptions):
    """Extra sources, and embeddings of all sources."""


def extra_specs(cfg: ExtraSourceOptions) -> List[SourceSpec]:
    """Extra sources of the model."""
    return parse_specs(cfg.extra_sources)


def source_names(cfg: ExtraSourceOptions) -> List[str]:
    """Names of the sources that target tokens attend to, the main one first."""
    return ["source", *map(str, extra_specs(cfg))]


def attended_names(cfg: ExtraSourceOptions, sentinel: bool) -> Tuple[str, ...]:
    """Names of the shares of attention: the sources, and the sentinel if there is one."""
    return (*source_names(cfg), *([SENTINEL] if sentinel else []))


def extra_inputs(cfg: ExtraSourceOptions, task: FairseqTask) -> List[ExtraSourceInput]:
    """Dictionaries and widths of the extra sources, from the task's data."""
    specs, widths = extra_specs(cfg), cfg.extra_feature_dims
    if widths and len(widths) != sum(spec.kind == "features" for spec in specs):
        raise InputError(f"--extra-feature-dims {widths}: needs one width per feature source")
    return task.extra_inputs(specs, widths) if specs else []


class MainEncoder(Protocol):
    """Parts of the main encoder that encoders of extra sources use."""

    embed_tokens: nn.Embedding

    def encode_tokens(
        self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None
    ) -> Tensor:
        """Packed states [M, d] of packed tokens [M], optionally with other embeddings."""


class SourceEncoder(nn.Module):
    """Contract of encoders of one extra source."""

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """Plans that ``forward`` uses; ``main``: plans of the main encoder."""
        return iter(())

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """States [M, d_k], each sentence encoded independently.

        Args:
            values: [M] packed tokens of sentences, or [M, d_f] features.
            layout: layout of the sentences, each its own document; None for features.
            main: main encoder, which is not a submodule of this encoder.
        """
        raise NotImplementedError


class SharedEncoder(SourceEncoder):
    """The main encoder's layers, with separate embeddings if ``embed_tokens`` is not None."""

    def __init__(self, embed_tokens: Optional[nn.Embedding]):
        super().__init__()
        self.embed_tokens = embed_tokens

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """See :class:`SourceEncoder`."""
        return iter(main)

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """See :class:`SourceEncoder`."""
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

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """See :class:`SourceEncoder`."""
        return self.dropout(self.layer_norm(self.projection(values.to(self.projection.weight.dtype))))


def source_encoder(
    cfg: SourceOptions,
    dictionary: Dictionary,
    sizes: Tuple[int, int],
    dropout: float,
    make_separate: Callable[[Optional[nn.Embedding]], SourceEncoder],
    given: ExtraSourceInput,
) -> Optional[SourceEncoder]:
    """Encoder of an extra source; None if the states of the main encoder are used.

    Args:
        cfg: options of the model.
        dictionary: dictionary of the main source.
        sizes: widths of embeddings and of states.
        dropout: dropout of features.
        make_separate: builds a separate encoder with given embeddings (None: the main encoder's).
        given: the extra source.

    Raises:
        InputError: shared embeddings with different dictionaries.
    """
    embed_dim, width = sizes
    shared = str(cfg.extra_encoder) == SHARED
    if given.dictionary is None:
        return FeatureEncoder(given.width, width, dropout)
    if shared and given.spec.of_document:
        return None
    embed_tokens = None
    if not cfg.share_extra_embeddings:
        embed_tokens = token_embedding(cfg, given.dictionary, embed_dim)
    elif given.dictionary != dictionary:
        raise InputError(
            f"--share-extra-embeddings: {given.spec} does not have the source's dictionary; prepare the text with it "
            "(docnmt prepare --extra)"
        )
    return SharedEncoder(embed_tokens) if shared else make_separate(embed_tokens)


class ExtraSources(nn.Module):
    """Encoders of all extra sources.

    Args:
        inputs: the sources.
        make: builds the encoder of a source; None for context sentences whose states the main encoder has.
        seed: seed of the random choice of context sentences.

    Attributes:
        rows: keys of the plans that map decoded sentences to the states of each source.
    """

    def __init__(
        self, inputs: Sequence[ExtraSourceInput], make: Callable[[ExtraSourceInput], Optional[SourceEncoder]], seed: int
    ):
        super().__init__()
        self.specs = [given.spec for given in inputs]
        encoders = {str(number): make(given) for number, given in enumerate(inputs)}
        self.encoders = nn.ModuleDict({number: encoder for number, encoder in encoders.items() if encoder is not None})
        self.contexts = [ContextSentences(spec.contexts, spec.kind, seed) for spec in self.specs]  # of document sources
        self.rows: List[SourceKey] = []
        for number, spec in enumerate(self.specs):
            of_document = OfSeparateContext if str(number) in self.encoders else OfContextSentences
            self.rows.append(of_document(self.contexts[number]) if spec.of_document else OfExtraSource(number))

    @property
    def similar_contexts(self) -> int:
        """Number of similar sentences per sentence in the batch, see ``context.selected.base.similar_contexts``."""
        return max((spec.contexts for spec in self.specs if spec.kind == "similar"), default=0)

    @property
    def drawn_contexts(self) -> int:
        """Number of training-set sentences in the batch, see ``context.selected.base.drawn_contexts``."""
        return max((spec.contexts for spec in self.specs if spec.kind == "training-set"), default=0)

    def encoder_of(self, number: int) -> Optional[SourceEncoder]:
        """Encoder of a source; None if the states of the main encoder are used."""
        return dict(self.encoders.items()).get(str(number))  # type: ignore[return-value]

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """Plans that :meth:`encode` uses; ``main``: plans of the main encoder."""
        main = tuple(main)
        for number, spec in enumerate(self.specs):
            encoder = self.encoder_of(number)
            inner = () if encoder is None else tuple(encoder.plans(main))
            if spec.of_document and encoder is not None:
                yield SeparateContext(self.contexts[number], inner)
            elif spec.kind == "text":
                yield SeparateExtraSource(number, inner)
            yield self.rows[number]

    def encode(
        self,
        tokens: Tensor,
        layout: DocumentLayout,
        states: Tensor,
        extra_sources: Sequence[Optional[ExtraSourceBatch]],
        main: MainEncoder,
    ) -> List[SourceStates]:
        """States of every source.

        (Not ``forward``: module hooks, e.g. of fairseq's NaN detector, expect tensors.)

        Args:
            tokens: [N] packed tokens of all rows.
            layout: the batch.
            states: [N, d] final states of the main encoder.
            extra_sources: data of every source in the batch, None for sentences of the document.
            main: the main encoder.

        Raises:
            InputError: the batch lacks the data of a source.
        """
        encoded = []
        for number, spec in enumerate(self.specs):
            encoder = self.encoder_of(number)
            if encoder is None:
                encoded.append(SourceStates(states, self.rows[number]))
                continue
            given: Optional[Tuple[Tensor, Optional[DocumentLayout]]]
            if spec.of_document:
                apart = layout.plan(SeparateContext(self.contexts[number]))
                given = None if apart is None else (tokens.index_select(0, apart.tokens), apart.layout)
            else:
                source = extra_sources[number] if extra_sources else None
                if source is None:
                    raise InputError(f"the model needs the extra source {spec}, which this batch lacks")
                of_text = layout.plan(SeparateExtraSource(number)) if spec.kind == "text" else None
                given = (source.to(states.device).values, of_text) if len(source.values) else None
            if given is None:  # no sentence of the batch has this source
                of_source = states.new_zeros(1, states.size(1)) + zero_of(encoder)
            else:
                of_source = encoder(*given, main)
            encoded.append(SourceStates(of_source, self.rows[number]))
        return encoded


def with_extra_lengths(layout: DocumentLayout, extra_sources: Sequence[Optional[ExtraSourceBatch]]) -> DocumentLayout:
    """Layout with the lengths of extra sources, None for sentences of the document."""
    lengths = lengths_of(extra_sources)
    return layout if lengths is None else layout.with_extra_lengths(lengths)
