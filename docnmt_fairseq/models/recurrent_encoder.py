"""The encoder of ``document_rnn``: sentences are read from both ends, each by itself, without padding."""

from functools import partial
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from docnmt_fairseq.data.further_data import FurtherInput
from docnmt_fairseq.data.line_source import LineSource
from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.encoder_rows import completed, sentences_of_hypotheses
from docnmt_fairseq.models.further_sources import FurtherSources, MainEncoder, Reader, reader_of
from docnmt_fairseq.models.recurrent_config import DocumentRNNConfig
from docnmt_fairseq.modules.recurrent.layers import BidirectionalLayers
from docnmt_fairseq.modules.source_states import SourceStates


class RecurrentReader(Reader):
    """Bidirectional recurrent layers of its own for one further source, of the encoder's kind and widths.

    Args:
        cfg: of the model.
        embed_tokens: embeddings of its own, None: the encoder's.
    """

    def __init__(self, cfg: DocumentRNNConfig, embed_tokens: Optional[nn.Embedding]):
        super().__init__()
        self.embed_tokens = embed_tokens
        self.dropout = nn.Dropout(cfg.dropout)
        count = cfg.further_encoder_layers or cfg.encoder_layers
        sizes = (cfg.encoder_embed_dim, cfg.encoder_hidden_size, count, cfg.dropout)
        self.layers = BidirectionalLayers(cfg.encoder_cell, *sizes)

    def forward(self, values: Tensor, layout: Optional[DocumentLayout], main: MainEncoder) -> Tensor:
        """Returns [M, output_dim]; see :class:`Reader`."""
        embed_tokens = main.embed_tokens if self.embed_tokens is None else self.embed_tokens
        return self.layers(self.dropout(embed_tokens(values)), layout.words)


class RecurrentEncoder(FairseqEncoder):
    """Bidirectional recurrent layers over embedded words.

    Args:
        cfg: of the model.
        dictionary: of the source language.
        embed: the embeddings.
        inputs: further sources.
    """

    def __init__(
        self, cfg: DocumentRNNConfig, dictionary: object, embed: nn.Embedding, inputs: Sequence[FurtherInput] = ()
    ):
        super().__init__(dictionary)
        self.document_cfg = cfg
        self.embed_tokens = embed
        self.padding_idx = embed.padding_idx
        self.max_source_positions = cfg.max_source_positions
        self.dropout = nn.Dropout(cfg.dropout)
        sizes = (cfg.encoder_embed_dim, cfg.encoder_hidden_size, cfg.encoder_layers, cfg.dropout)
        self.layers = BidirectionalLayers(cfg.encoder_cell, *sizes)
        self.output_dim = self.layers.output_dim
        make = partial(
            reader_of,
            cfg,
            dictionary,
            (cfg.encoder_embed_dim, self.output_dim),
            lambda embed_tokens: RecurrentReader(cfg, embed_tokens),
        )
        self.further = FurtherSources(inputs, make, cfg.seed) if inputs else None
        # The decoder's method of that name, put here by the model: a search sees only what the encoder's output holds.
        self.remember: Callable[[List[SourceStates]], Tuple[Tensor, List[SourceStates]]]

    def read(self, tokens: Tensor, layout: DocumentLayout, embed_tokens: Optional[nn.Embedding] = None) -> Tensor:
        """Returns the states [N, output_dim] of packed words [N]; embedded by another table where one is given."""
        return self.layers(self.dropout((embed_tokens or self.embed_tokens)(tokens)), layout.words)

    def encode(
        self,
        src_tokens: Tensor,
        layout: DocumentLayout,
        further: Optional[Sequence[Optional[LineSource]]] = None,
    ) -> List[SourceStates]:
        """Returns the states of every source of the decoded rows; the first one is the sentences themselves.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
            further: the batch's data of every further source, None where the document holds it.
        """
        if self.further is None and layout.decoded is not None:
            layout = layout.without_context()
        tokens = layout.pack_tokens(src_tokens)
        states = self.read(tokens, layout)
        main = SourceStates(layout.keep_decoded(states), layout.decoded_words.lengths)
        return [main] if self.further is None else [main, *self.further.read(tokens, layout, states, further, self)]

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        layout: Optional[DocumentLayout] = None,
        further: Optional[Sequence[Optional[LineSource]]] = None,
        **unused,
    ) -> Dict[str, List[Tensor]]:
        """Returns what a search needs of the decoded rows.

        ``initial_state`` [S, w] of the decoder; of every source ``memories`` [S, n_k, w_k] and ``paddings`` [S, n_k].

        Args:
            src_tokens: [S, m], padded on either side; without a layout every sentence stands alone.
            src_lengths: not needed, for fairseq's callers.
            layout: the batch.
            further: see :meth:`encode`.
        """
        sources = self.encode(*completed(src_tokens, layout, self.padding_idx), further)
        state, memories = self.remember(sources)
        padded = [memory.padded() for memory in memories]
        return {
            "initial_state": [state],
            "memories": [memory for memory, _ in padded],
            "paddings": [padding for _, padding in padded],
        }

    def reorder_encoder_out(self, encoder_out: Dict[str, List[Tensor]], new_order: Tensor) -> Dict[str, List[Tensor]]:
        """Returns the output for the rows ``new_order`` [B]; the hypotheses of a sentence share what is of it."""
        everyone = torch.arange(len(encoder_out["initial_state"][0]), device=new_order.device)
        rows = encoder_out.get("row_sentence", [everyone])[0]
        kept, row_sentence = sentences_of_hypotheses(rows, new_order)
        output = dict(encoder_out)
        if not torch.equal(kept, everyone):
            for name in ("initial_state", "memories", "paddings"):
                output[name] = [part.index_select(0, kept) for part in encoder_out[name]]
        output["row_sentence"] = [row_sentence]
        return output

    def max_positions(self) -> int:
        """Returns the longest sentence that the encoder takes, in tokens."""
        return self.max_source_positions
