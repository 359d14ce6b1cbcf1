"""Encoders of further sources: from what a batch holds of them to the states that a decoder attends to."""

from typing import Callable, List, Optional, Protocol, Sequence, Tuple

import numpy as np
import torch
from fairseq.models.transformer import Embedding
from torch import Tensor, nn

from docnmt_fairseq.data.further_data import FurtherInput
from docnmt_fairseq.data.line_source import LineSource
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.further_config import SHARED, FurtherSourcesConfig
from docnmt_fairseq.modules.context_selection import ContextSentences, items_of, zero_of
from docnmt_fairseq.modules.source_states import SourceStates


class MainEncoder(Protocol):
    """What a reader may need of the encoder of the sentences to be translated."""

    embed_tokens: nn.Embedding

    def read(self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None) -> Tensor:
        """Returns packed states [M, d] of packed words [M]; embedded by a table of its own where one is given."""


class Reader(nn.Module):
    """Contract of what reads the sentences of one further source."""

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """Returns states [M, d_k], those of each sentence from it alone.

        Args:
            values: [M] packed words of sentences, or [M, d_f] features.
            layout: of the sentences, each a document of its own; None of features.
            main: the encoder of the sentences to be translated, which no reader holds as a part of itself.
        """
        raise NotImplementedError


class SharedReader(Reader):
    """The main encoder's layers.

    Args:
        embed_tokens: embeddings of its own, None: also the main encoder's.
    """

    def __init__(self, embed_tokens: Optional[nn.Embedding]):
        super().__init__()
        self.embed_tokens = embed_tokens

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """Returns [M, d]; see :class:`Reader`."""
        return main.read(values, layout, self.embed_tokens)


class FeatureReader(Reader):
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
        """Returns [M, d]; see :class:`Reader`."""
        return self.dropout(self.layer_norm(self.projection(values.to(self.projection.weight.dtype))))


def reader_of(
    cfg: FurtherSourcesConfig,
    dictionary: object,
    sizes: Tuple[int, int],
    make_separate: Callable[[Optional[nn.Embedding]], Reader],
    given: FurtherInput,
) -> Optional[Reader]:
    """Returns the reader of a further source as the options say; None where the main encoder's states serve.

    Args:
        cfg: the model's options.
        dictionary: of the source.
        sizes: widths of embeddings and of states.
        make_separate: returns an encoder of its own, with embeddings, None: the main encoder's.
        given: the further source.

    Raises:
        InputError: embeddings are to be shared between different dictionaries.
    """
    embed_dim, width = sizes
    shared = str(cfg.further_encoder) == SHARED
    if given.width:
        return FeatureReader(given.width, width, cfg.dropout)
    if shared and given.spec.of_document:
        return None
    embed_tokens = None
    if not cfg.share_further_embeddings:
        embed_tokens = Embedding(len(given.dictionary), embed_dim, given.dictionary.pad())
    elif given.dictionary != dictionary:
        raise InputError(
            f"--share-further-embeddings: {given.spec} has another dictionary than the source; leave the option out, "
            "or prepare the text with the source's (docnmt prepare --further)"
        )
    return SharedReader(embed_tokens) if shared else make_separate(embed_tokens)


class FurtherSources(nn.Module):
    """The states of every further source for the decoded sentences.

    Args:
        inputs: the sources.
        make: returns the reader of one; None for context sentences that have been read: the main encoder's states are
            then only looked up.
        seed: of a random choice of context sentences.
    """

    def __init__(self, inputs: Sequence[FurtherInput], make: Callable[[FurtherInput], Optional[Reader]], seed: int):
        super().__init__()
        self.specs = [given.spec for given in inputs]
        readers = {str(number): make(given) for number, given in enumerate(inputs)}
        self.readers = nn.ModuleDict({number: reader for number, reader in readers.items() if reader is not None})
        self.seed = seed

    @property
    def similar_contexts(self) -> int:
        """Returns how many similar sentences the batch must know of each, see :func:`similar_contexts`."""
        return max((spec.contexts for spec in self.specs if spec.kind == "similar"), default=0)

    def read(
        self,
        tokens: Tensor,
        layout: DocumentLayout,
        states: Tensor,
        further: Optional[Sequence[Optional[LineSource]]],
        main: MainEncoder,
    ) -> List[SourceStates]:
        """Returns the states of every source.

        No ``forward``: hooks of modules, as fairseq's search for NaN sets them, expect tensors.

        Args:
            tokens: [N] packed words of all rows.
            layout: the batch.
            states: [N, d] the main encoder's final states.
            further: the batch's data of every source, None where the document holds it; None: all of them.
            main: the main encoder.

        Raises:
            InputError: a source that is not in the document, but the batch has nothing of it.
        """
        found, readers = [], dict(self.readers.items())
        for number, spec in enumerate(self.specs):
            reader = readers.get(str(number))
            if spec.of_document:
                contexts = ContextSentences.select(layout, spec.contexts, spec.kind, self.seed)
                found.append(self.of_document(contexts, tokens, layout, states, reader, main))
                continue
            source = further[number] if further else None
            if source is None:
                raise InputError(f"the model needs {spec} for every sentence, but this batch comes without")
            found.append(self.of_lines(source.to(states.device), states, reader, main))
        return found

    def of_document(
        self,
        contexts: ContextSentences,
        tokens: Tensor,
        layout: DocumentLayout,
        states: Tensor,
        reader: Optional[Reader],
        main: MainEncoder,
    ) -> SourceStates:
        """Returns the states of the decoded rows' context sentences; each sentence is read once.

        Args:
            contexts: which sentences these are.
            tokens, layout, states, main: see :meth:`read`.
            reader: of the sentences, None: their ``states``.
        """
        rows = np.arange(layout.words.rows) if layout.decoded is None else layout.decoded
        counts = contexts.counts[rows]
        row, place = np.repeat(rows, counts), np.arange(int(counts.sum()))
        sentences = contexts.sentences[contexts.first[row] + place - np.repeat(np.cumsum(counts) - counts, counts)]
        lengths = np.bincount(
            np.repeat(np.arange(len(rows)), counts), layout.words.lengths[sentences], minlength=len(rows)
        ).astype(np.int64)
        if reader is None:
            return SourceStates(states, lengths, items_of(layout.words, sentences))
        needed, number = np.unique(sentences, return_inverse=True)
        if not len(needed):
            return nothing(reader, states, lengths)
        alone = DocumentLayout.of_single_sentences(layout.words.lengths[needed]).to(layout.device)
        words = torch.as_tensor(items_of(layout.words, needed), device=tokens.device)
        return SourceStates(reader(tokens[words], alone, main), lengths, items_of(alone.words, number))

    def of_lines(self, source: LineSource, states: Tensor, reader: Reader, main: MainEncoder) -> SourceStates:
        """Returns the states of a source whose data the batch brings."""
        if source.values.dim() == 2:
            if not len(source.values):
                return nothing(reader, states, source.lengths)
            return SourceStates(reader(source.values, None, main), source.lengths)
        layout = DocumentLayout.of_single_sentences(source.lengths).to(states.device)
        return SourceStates(reader(source.values, layout, main), source.lengths)


def nothing(reader: Reader, states: Tensor, lengths: np.ndarray) -> SourceStates:
    """Returns a source of which no sentence of the batch has anything; see :func:`zero_of`."""
    zero = states.new_zeros(1, states.size(1)) + zero_of(reader)
    return SourceStates(zero, lengths, np.zeros(0, dtype=np.int64))
