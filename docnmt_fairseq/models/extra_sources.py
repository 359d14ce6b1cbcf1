"""Encoders of extra sources: from what a batch holds of them to the states that a decoder attends to."""

from typing import Any, Callable, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple

from fairseq.data import Dictionary
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
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, ExtraSourceInput, lengths_of
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.extra_sources_config import SHARED
from docnmt_fairseq.models.token_embeddings import SourceOptions, token_embedding
from docnmt_fairseq.multisource.source_states import SourceStates


class MainEncoder(Protocol):
    """What an encoder of an extra source may need of the encoder of the sentences to be translated."""

    embed_tokens: nn.Embedding

    def encode_tokens(
        self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None
    ) -> Tensor:
        """Packed states [M, d] of packed tokens [M]; embedded by a table of its own where one is given."""


class SourceEncoder(nn.Module):
    """Contract of what encodes the sentences of one extra source."""

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """The plans that ``forward`` will ask its layout for; ``main``: those of the main encoder."""
        return iter(())

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """States [M, d_k], those of each sentence from it alone.

        Args:
            values: [M] packed tokens of sentences, or [M, d_f] features.
            layout: of the sentences, each a document of its own; None of features.
            main: the encoder of the sentences to be translated, which none of these holds as a part of itself.
        """
        raise NotImplementedError


class SharedEncoder(SourceEncoder):
    """The main encoder's layers.

    Args:
        embed_tokens: embeddings of its own, None: also the main encoder's.
    """

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
    """LayerNorm(W f + b) of each row f of precomputed features, whatever their scale.

    Args:
        width: d_f.
        embed_dim: d.
        dropout: of the result.
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
    """The encoder of an extra source as the options say; None where the main encoder's states serve.

    Args:
        cfg: the model's options.
        dictionary: of the source.
        sizes: widths of embeddings and of states.
        dropout: of features.
        make_separate: makes an encoder of its own, with embeddings, None: the main encoder's.
        given: the extra source.

    Raises:
        InputError: embeddings are to be shared between different dictionaries.
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
            f"--share-extra-embeddings: {given.spec} has another dictionary than the source; leave the option out, "
            "or prepare the text with the source's (docnmt prepare --extra)"
        )
    return SharedEncoder(embed_tokens) if shared else make_separate(embed_tokens)


class ExtraSources(nn.Module):
    """The states of every extra source for the decoded sentences.

    Args:
        inputs: the sources.
        make: makes the encoder of one; None for context sentences that are encoded already: the main encoder's states
            are then only looked up.
        seed: of a random choice of context sentences.

    Attributes:
        rows: of every source, which of its states decoded sentences see.
    """

    def __init__(
        self, inputs: Sequence[ExtraSourceInput], make: Callable[[ExtraSourceInput], Optional[SourceEncoder]], seed: int
    ):
        super().__init__()
        self.specs = [given.spec for given in inputs]
        encoders = {str(number): make(given) for number, given in enumerate(inputs)}
        self.encoders = nn.ModuleDict({number: encoder for number, encoder in encoders.items() if encoder is not None})
        self.contexts = [ContextSentences(spec.contexts, spec.kind, seed) for spec in self.specs]
        self.rows: List[SourceKey] = []
        for number, spec in enumerate(self.specs):
            of_document = OfSeparateContext if str(number) in self.encoders else OfContextSentences
            self.rows.append(of_document(self.contexts[number]) if spec.of_document else OfExtraSource(number))

    @property
    def similar_contexts(self) -> int:
        """How many similar sentences of each the batch must know, see ``context.selected.base.similar_contexts``."""
        return max((spec.contexts for spec in self.specs if spec.kind == "similar"), default=0)

    @property
    def drawn_contexts(self) -> int:
        """How many sentences of the training set it must bring along, see ``context.selected.base.drawn_contexts``."""
        return max((spec.contexts for spec in self.specs if spec.kind == "training-set"), default=0)

    def encoder_of(self, number: int) -> Optional[SourceEncoder]:
        """The encoder of a source; None where the main encoder's states serve."""
        return dict(self.encoders.items()).get(str(number))  # type: ignore[return-value]

    def plans(self, main: Iterable[PlanKey[Any]]) -> Iterator[PlanKey[Any]]:
        """The plans that :meth:`encode` will ask a layout for; ``main``: those of the main encoder."""
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
        """The states of every source.

        No ``forward``: hooks of modules, as fairseq's search for NaN sets them, expect tensors.

        Args:
            tokens: [N] packed tokens of all rows.
            layout: the batch.
            states: [N, d] the main encoder's final states.
            extra_sources: the batch's data of every source, None where the document holds it; empty: all of them are
                there.
            main: the main encoder.

        Raises:
            InputError: a source that is not in the document, but the batch has nothing of it.
        """
        found = []
        for number, spec in enumerate(self.specs):
            encoder = self.encoder_of(number)
            if encoder is None:
                found.append(SourceStates(states, self.rows[number]))
                continue
            given: Optional[Tuple[Tensor, Optional[DocumentLayout]]]
            if spec.of_document:
                apart = layout.plan(SeparateContext(self.contexts[number]))
                given = None if apart is None else (tokens.index_select(0, apart.tokens), apart.layout)
            else:
                source = extra_sources[number] if extra_sources else None
                if source is None:
                    raise InputError(f"the model needs {spec} for every sentence, but this batch comes without")
                of_text = layout.plan(SeparateExtraSource(number)) if spec.kind == "text" else None
                given = (source.to(states.device).values, of_text) if len(source.values) else None
            if given is None:  # of which no sentence of the batch has anything
                of_source = states.new_zeros(1, states.size(1)) + zero_of(encoder)
            else:
                of_source = encoder(*given, main)
            found.append(SourceStates(of_source, self.rows[number]))
        return found


def with_extra_lengths(layout: DocumentLayout, extra_sources: Sequence[Optional[ExtraSourceBatch]]) -> DocumentLayout:
    """The layout of a batch beside its data of extra sources, None where the document holds it."""
    lengths = lengths_of(extra_sources)
    return layout if lengths is None else layout.with_extra_lengths(lengths)
