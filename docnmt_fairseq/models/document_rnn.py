"""``document_rnn``: a recurrent encoder and a recurrent decoder with attention."""

from argparse import Namespace
from typing import Dict, Optional, Sequence, Tuple

from fairseq.models import FairseqEncoderDecoderModel, register_model, register_model_architecture
from fairseq.models.transformer import Embedding
from torch import Tensor

from docnmt_fairseq.data.line_source import LineSource
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layout import DocumentLayout
from docnmt_fairseq.models.alternating import alternate_updates
from docnmt_fairseq.models.document_model import DocumentModel
from docnmt_fairseq.models.encoder_rows import completed
from docnmt_fairseq.models.further_config import further_specs
from docnmt_fairseq.models.recurrent_config import DocumentRNNConfig, check
from docnmt_fairseq.models.recurrent_decoder import RecurrentDecoder
from docnmt_fairseq.models.recurrent_encoder import RecurrentEncoder


@register_model("document_rnn", dataclass=DocumentRNNConfig)
class DocumentRNN(DocumentModel, FairseqEncoderDecoderModel):
    """Sentences are read from both ends; the decoder attends to what was read, one step after another."""

    options = DocumentRNNConfig
    gives_alignment = False  # combinations of attention keep the weights of words to themselves

    def __init__(self, encoder: RecurrentEncoder, decoder: RecurrentDecoder):
        super().__init__(encoder, decoder)
        encoder.remember = decoder.remember

    @classmethod
    def build_model(cls, cfg: DocumentRNNConfig, task: object) -> "DocumentRNN":
        """Returns the model; :class:`InputError` if options contradict each other."""
        cfg = cls.complete(cfg)
        check(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if cfg.share_all_embeddings and source != target:
            raise InputError(
                "--share-all-embeddings: needs one joined dictionary (fairseq-preprocess --joined-dictionary)"
            )
        of_source = Embedding(len(source), cfg.encoder_embed_dim, source.pad())
        of_target = of_source
        if not cfg.share_all_embeddings:
            of_target = Embedding(len(target), cfg.decoder_embed_dim, target.pad())
        specs = further_specs(cfg)
        inputs = task.further_inputs(specs, cfg.further_feature_dims) if specs else []
        encoder = RecurrentEncoder(cfg, source, of_source, inputs)
        model = cls(encoder, RecurrentDecoder(cfg, target, of_target, (encoder.output_dim,) * (1 + len(inputs))))
        alternate_updates(model, cfg)
        return model

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        layout: Optional[DocumentLayout] = None,
        features_only: bool = False,
        further: Optional[Sequence[Optional[LineSource]]] = None,
        **unused,
    ) -> Tuple[Tensor, Dict[str, object]]:
        """Returns logits and extras: in training packed [target tokens, V] (see :meth:`get_targets`), else [S, m_t, V].

        Args:
            src_tokens: [S, m] decoded sentences.
            src_lengths: not needed, for fairseq's callers.
            prev_output_tokens: right-padded [S, m_t].
            layout: the batch; without it every sentence stands alone.
            features_only: what goes into the output projection, instead of logits.
            further: see :meth:`RecurrentEncoder.encode`.
        """
        src_tokens, layout = completed(src_tokens, layout, self.encoder.padding_idx)
        layout = self.layout_for(layout, prev_output_tokens)
        sources = self.encoder.encode(src_tokens, layout, further)
        output, extra = self.decoder.decode_packed(prev_output_tokens, sources, layout, features_only)
        return self.output_of(output, extra, layout, prev_output_tokens.size(1))


SIZES = {  # of both sides: embeddings, states, attention, layers
    "": {},
    "_base": {"encoder_embed_dim": 512, "encoder_hidden_size": 512, "attention_dim": 512},
    "_small": {"encoder_embed_dim": 256, "encoder_hidden_size": 256, "attention_dim": 256},
    "_tiny": {"encoder_embed_dim": 32, "encoder_hidden_size": 32, "attention_dim": 32},
}
CELLS = {  # of the encoder and the decoder
    "": {},
    "_lstm": {"encoder_cell": "lstm", "decoder_cell": "lstm"},
    "_ca_rnn": {"encoder_cell": "ca-rnn", "decoder_cell": "ca-rnn"},
    "_conditional_gru": {"decoder_cell": "conditional-gru"},
}
RNNSEARCH = {"initial_state": "last-backward", "deep_output": "maxout"}
# Bahdanau et al. 2015, A.2.3.
RNNSEARCH_50 = {"encoder_embed_dim": 620, "encoder_hidden_size": 1000, "attention_dim": 1000}


def _register(name: str, **values: object) -> None:
    def preset(args: Namespace) -> None:
        for option, value in values.items():
            if getattr(args, option, None) is None:
                setattr(args, option, value)

    register_model_architecture("document_rnn", name)(preset)


for _size, _values in SIZES.items():
    for _cell, _cells in CELLS.items():
        if _size or _cell:  # document_rnn is the model itself
            _register(f"document_rnn{_cell}{_size}", **_cells, **_values)
    if _size:
        _register(f"rnnsearch{_size}", **RNNSEARCH, **_values)
_register("rnnsearch", **RNNSEARCH, **RNNSEARCH_50, decoder_out_embed_dim=500)
