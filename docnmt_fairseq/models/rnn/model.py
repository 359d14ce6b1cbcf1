"""``document_rnn``: recurrent encoder and decoder with attention, and its named architectures."""

from argparse import Namespace
from typing import Any, Dict, Tuple

from fairseq.models import FairseqEncoderDecoderModel, register_model, register_model_architecture
from fairseq.tasks import FairseqTask

from docnmt_fairseq.models.base import DocumentModel
from docnmt_fairseq.models.extra_sources import extra_inputs
from docnmt_fairseq.models.options import alternate_updates, source_and_target_embeddings
from docnmt_fairseq.models.rnn.config import DocumentRNNConfig, check
from docnmt_fairseq.models.rnn.decoder import RecurrentDecoder
from docnmt_fairseq.models.rnn.encoder import RecurrentEncoder


@register_model("document_rnn", dataclass=DocumentRNNConfig)
class DocumentRNN(DocumentModel, FairseqEncoderDecoderModel):
    """Bidirectional encoder, and a decoder that attends to the sources at every step."""

    options = DocumentRNNConfig

    @classmethod
    def build_model(cls, cfg: Any, task: FairseqTask) -> "DocumentRNN":
        """Builds the model; :class:`InputError` for invalid options."""
        cfg = cls.complete(cfg)
        check(cfg)
        of_source, of_target = source_and_target_embeddings(cfg, task)
        inputs = extra_inputs(cfg, task)
        encoder = RecurrentEncoder(cfg, task.source_dictionary, of_source, inputs)
        source_dims = (encoder.output_dim,) * (1 + len(inputs))
        decoder = RecurrentDecoder(cfg, task.target_dictionary, of_target, source_dims, encoder.extra_sources.rows)
        model = cls(encoder, decoder)
        alternate_updates(model, cfg)
        return model


SIZES: Dict[str, Dict[str, Any]] = {  # of both sides: embeddings, states, attention
    "": {},
    "_base": {"encoder_embed_dim": 512, "encoder_hidden_size": 512, "attention_dim": 512},
    "_small": {"encoder_embed_dim": 256, "encoder_hidden_size": 256, "attention_dim": 256},
    "_tiny": {"encoder_embed_dim": 32, "encoder_hidden_size": 32, "attention_dim": 32},
}
CELLS: Dict[str, Dict[str, Any]] = {  # of encoder and decoder
    "": {},
    "_lstm": {"encoder_cell": "lstm", "decoder_cell": "lstm"},
    "_ca_rnn": {"encoder_cell": "ca-rnn", "decoder_cell": "ca-rnn"},
    "_conditional_gru": {"decoder_cell": "conditional-gru"},
}
# One source: c_i = Σ_j α_ij h_j without a projection, which flat needs for sources of different spaces.
PLAIN_CONTEXT: Dict[str, Any] = {"attention_combination": "concatenation", "concatenated_contexts": "whole"}
RNNSEARCH: Dict[str, Any] = {  # Bahdanau et al. 2015, A.1.1 and A.2.2
    **PLAIN_CONTEXT,
    "encoder_cell": "gru-reset-before", "decoder_cell": "gru-reset-before", "initial_state": "last-backward",
    "deep_output": "maxout",
}  # fmt: skip
# Bahdanau et al. 2015, A.2.3.
RNNSEARCH_50: Dict[str, Any] = {"encoder_embed_dim": 620, "encoder_hidden_size": 1000, "attention_dim": 1000}
# [L] sec. 4: sizes for both tasks.
LIBOVICKY_HELCL: Dict[str, Any] = {
    "encoder_embed_dim": 300, "encoder_hidden_size": 300, "attention_dim": 500, "context_vector_dim": 500,
}  # fmt: skip
# [L] eq. 1, 4, 5 and sec. 3; the GRU of Cho et al. 2014.
IN_ORDER: Dict[str, Any] = {
    "encoder_cell": "gru-reset-before", "decoder_cell": "gru-reset-before", "attend_with": "updated",
    "concatenated_contexts": "whole",
}  # fmt: skip
# [Z] sec. 4.3.1 and Fig. 11: embeddings of width 100; the previous cell state is the query, the cell's output is the
# deep output. Sizes of states and attention are not given; here those of embeddings.
FIG_11: Dict[str, Any] = {
    **PLAIN_CONTEXT,
    "encoder_cell": "ca-rnn", "decoder_cell": "ca-rnn", "attention_query": "cell", "combination_attention": "luong",
    "deep_output": "state",
}  # fmt: skip
ZENG: Dict[str, Any] = {"encoder_embed_dim": 100, "encoder_hidden_size": 100, "attention_dim": 100}
PAPERS: Dict[str, Tuple[Dict[str, Any], Dict[str, Any]]] = {  # architecture, published sizes
    "rnnsearch": (RNNSEARCH, {**RNNSEARCH_50, "decoder_out_embed_dim": 500}),
    "document_rnn_zeng": (FIG_11, ZENG),
    "document_rnn_post_editing": (IN_ORDER, {**LIBOVICKY_HELCL, "decoder_hidden_size": 300}),
    "document_rnn_multimodal": (
        {**IN_ORDER, "decoder_cell": "conditional-gru"}, {**LIBOVICKY_HELCL, "decoder_hidden_size": 500}
    ),
}  # fmt: skip


def _register(name: str, **values: Any) -> None:
    def preset(args: Namespace) -> None:
        DocumentRNN.check_task(args)
        for option, value in values.items():
            if getattr(args, option, None) is None:
                setattr(args, option, value)

    register_model_architecture("document_rnn", name)(preset)


for _size, _values in SIZES.items():
    for _cell, _cells in CELLS.items():
        if _size or _cell:  # document_rnn is the model's own name
            _register(f"document_rnn{_cell}{_size}", **_cells, **_values)
for _name, (_model, _sizes) in PAPERS.items():
    for _size, _values in {**SIZES, "": _sizes}.items():
        _register(f"{_name}{_size}", **_model, **_values)
