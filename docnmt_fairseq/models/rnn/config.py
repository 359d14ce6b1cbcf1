"""Options of ``document_rnn``."""

from dataclasses import dataclass
from typing import Iterator

from omegaconf import II

from docnmt_fairseq import multisource, recurrent  # noqa: F401  (registers cells, scores and combinations)
from docnmt_fairseq.errors import refuse
from docnmt_fairseq.models.extra_sources import ExtraSourceOptions, attended_names
from docnmt_fairseq.models.options import AlternatingOptions, TokenEmbeddingOptions, TrainedViewOptions, flat_options
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CONTEXTS
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import option, problems_of
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS
from docnmt_fairseq.recurrent.layers import (
    ATTENDING_STATES,
    CONDITIONAL_GRU,
    DEEP_OUTPUTS,
    QUERIES,
    SUMMARIES,
)


@dataclass
class DocumentRNNOptions(TrainedViewOptions, ExtraSourceOptions, TokenEmbeddingOptions, AlternatingOptions):
    """Sizes, regularisation, cells and attention."""

    dropout: float = option(
        0.1, "dropout probability of embeddings, between layers and before the output", minimum=0, maximum=1
    )
    attention_dropout: float = option(0.0, "dropout probability of attention weights", minimum=0, maximum=1)
    encoder_cell: str = option("gru", "recurrent cell of the encoder", names=RECURRENT_CELLS)
    encoder_embed_dim: int = option(512, "width of source embeddings", minimum=1)
    encoder_hidden_size: int = option(512, "width of encoder states, per direction", minimum=1)
    encoder_layers: int = option(1, "number of bidirectional encoder layers", minimum=1)
    decoder_cell: str = option(
        "gru", "recurrent cell of the decoder; conditional-gru attends between its two steps, others as --attend-with "
        "says", names=RECURRENT_CELLS, also=(CONDITIONAL_GRU,),
    )  # fmt: skip
    attend_with: str = option(
        "previous", "decoder state that is the attention's query: the previous state, whose context vector is an input "
        "of the step; or the updated state, whose context vector is an input of the next step (no effect on "
        "conditional-gru)", names=ATTENDING_STATES,
    )  # fmt: skip
    attention_query: str = option(
        "output", "part of the state that is the attention's query: the cell's output, or the cell state of cells that "
        "have one (lstm, ca-rnn)", names=QUERIES,
    )  # fmt: skip
    decoder_embed_dim: int = option(II("model.encoder_embed_dim"), "width of target embeddings", minimum=1)
    decoder_hidden_size: int = option(II("model.encoder_hidden_size"), "width of decoder states", minimum=1)
    decoder_layers: int = option(1, "number of decoder layers; the first one attends", minimum=1)
    decoder_out_embed_dim: int = option(II("model.decoder_embed_dim"), "width of the deep output", minimum=1)
    deep_output: str = option(
        "tanh", "input of the output projection: tanh or maxout of state, previous token and context; or the state",
        names=DEEP_OUTPUTS,
    )  # fmt: skip
    initial_state: str = option(
        "mean", "source of the decoder's initial state: mean of the encoder's states, or its last backward state, at "
        "the first token", names=SUMMARIES,
    )  # fmt: skip
    attention_combination: str = option(
        "flat", "combination of the attentions to several sources", names=ATTENTION_COMBINATIONS
    )
    combination_attention: str = option("bahdanau", "attention to one source", names=ATTENTION_SCORES)
    chi_embed_dim: int = option(
        0, "scores ca-att…, with one source: width of separate source embeddings that the indicator reads instead of "
        "the states; 0: none", minimum=0,
    )  # fmt: skip
    attention_dim: int = option(512, "width of the space of additive attention scores", minimum=1)
    decoder_attention_heads: int = option(1, "number of heads of multi-head attention", minimum=1)
    share_combination_projections: bool = option(
        False, "flat and hierarchical: energies and context vectors share their projections"
    )
    attention_sentinel: bool = option(False, "flat and hierarchical: add the gated decoder state to the attention")
    context_vector_dim: int = option(
        0, "width of projected context vectors (all combinations but a whole concatenation); 0: width of the first "
        "source's states", minimum=0,
    )  # fmt: skip
    concatenated_contexts: str = option(
        "projected", "concatenation: project the context vectors of all sources together, or use them whole",
        names=CONTEXTS,
    )  # fmt: skip
    share_decoder_input_output_embed: bool = option(False, "share the decoder's input and output embeddings")
    share_all_embeddings: bool = option(False, "share all embeddings; needs one joined dictionary")


DocumentRNNConfig = flat_options("DocumentRNNConfig", __name__, [DocumentRNNOptions])


def check(cfg: DocumentRNNOptions) -> None:
    """Checks values and combinations of options.

    Raises:
        InputError: all problems, by their flags.
    """
    refuse([*problems_of(cfg, DocumentRNNConfig)] or _problems(cfg))


def _problems(cfg: DocumentRNNOptions) -> Iterator[str]:
    out, embed, hidden = cfg.decoder_out_embed_dim, cfg.decoder_embed_dim, cfg.decoder_hidden_size
    if str(cfg.deep_output) == "state" and out != hidden:
        yield f"--decoder-out-embed-dim {out}: must be --decoder-hidden-size {hidden} with --deep-output state"
    if (cfg.share_all_embeddings or cfg.share_decoder_input_output_embed) and out != embed:
        yield f"--decoder-out-embed-dim {out}: must be --decoder-embed-dim {embed} with shared embeddings"
    if cfg.chi_embed_dim and len(attended_names(cfg)) > 1:
        yield "--chi-embed-dim: not with --extra-sources"
