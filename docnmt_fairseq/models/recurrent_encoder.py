"""The encoder of ``document_rnn``: sentences are read from both ends, each by itself, without padding."""

from typing import Callable, Dict, List, Optional, Tuple

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from docnmt_fairseq.layout import DocumentLayout, Ragged
from docnmt_fairseq.models.encoder_rows import completed, sentences_of_hypotheses
from docnmt_fairseq.models.recurrent_config import DocumentRNNConfig
from docnmt_fairseq.modules.recurrent.layers import BidirectionalLayers
from docnmt_fairseq.modules.source_states import SourceStates


class RecurrentEncoder(FairseqEncoder):
    """Bidirectional recurrent layers over embedded words.

    Args:
        cfg: of the model.
        dictionary: of the source language.
        embed: the embeddings.
    """

    def __init__(self, cfg: DocumentRNNConfig, dictionary: object, embed: nn.Embedding):
        super().__init__(dictionary)
        self.embed_tokens = embed
        self.padding_idx = embed.padding_idx
        self.max_source_positions = cfg.max_source_positions
        self.dropout = nn.Dropout(cfg.dropout)
        sizes = (cfg.encoder_embed_dim, cfg.encoder_hidden_size, cfg.encoder_layers, cfg.dropout)
        self.layers = BidirectionalLayers(cfg.encoder_cell, *sizes)
        self.output_dim = self.layers.output_dim
        # The decoder's method of that name, put here by the model: a search sees only what the encoder's output holds.
        self.remember: Callable[[List[SourceStates]], Tuple[Tensor, List[SourceStates]]]

    def read(self, tokens: Tensor, rows: Ragged, embed_tokens: Optional[nn.Embedding] = None) -> Tensor:
        """Returns the states [N, output_dim] of packed words [N]; embedded by another table where one is given."""
        return self.layers(self.dropout((embed_tokens or self.embed_tokens)(tokens)), rows)

    def encode(self, src_tokens: Tensor, layout: DocumentLayout) -> List[SourceStates]:
        """Returns the states of every source of the decoded rows; there is one source, the sentences themselves.

        Args:
            src_tokens: right-padded [S, m] of the decoded rows.
            layout: the batch, on the same device.
        """
        rows = layout.decoded_words
        return [SourceStates(self.read(rows.pack(src_tokens), rows), rows.lengths)]

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        layout: Optional[DocumentLayout] = None,
        **unused,
    ) -> Dict[str, List[Tensor]]:
        """Returns what a search needs of the decoded rows.

        ``initial_state`` [S, w] of the decoder; of every source ``memories`` [S, n_k, w_k] and ``paddings`` [S, n_k].

        Args:
            src_tokens: [S, m], padded on either side; without a layout every sentence stands alone.
            src_lengths: not needed, for fairseq's callers.
            layout: the batch.
        """
        sources = self.encode(*completed(src_tokens, layout, self.padding_idx))
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
