"""Options of ``document_rnn``."""

from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Set, Tuple

from omegaconf import II

from docnmt_fairseq import multisource, recurrent  # noqa: F401  (registers cells, scores and combinations)
from docnmt_fairseq.errors import refuse
from docnmt_fairseq.models.alternating import AlternatingOptions
from docnmt_fairseq.models.base import TrainedViewOptions
from docnmt_fairseq.models.extra_sources_config import extra_problems, extra_specs
from docnmt_fairseq.models.flat_options import flat_options
from docnmt_fairseq.models.token_embeddings import SourceOptions
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CONTEXTS, CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.options import changed, option, plain, problems_of
from docnmt_fairseq.recurrent.attentive import ATTENDING_STATES, DECODER_CELLS, QUERIES, plain_cell
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS
from docnmt_fairseq.recurrent.layers import DEEP_OUTPUTS, SUMMARIES


@dataclass
class DocumentRNNOptions(TrainedViewOptions, SourceOptions, AlternatingOptions):
    """Sizes and regularisation, the cells, and how the decoder attends."""

    dropout: float = option(
        0.1, "dropout probability of embeddings, between layers and before the output", minimum=0, maximum=1
    )
    attention_dropout: float = option(0.0, "dropout probability of attention weights", minimum=0, maximum=1)
    encoder_cell: str = option("gru", "recurrent cell of the encoder", names=RECURRENT_CELLS)
    encoder_embed_dim: int = option(512, "width of the source embeddings", minimum=1)
    encoder_hidden_size: int = option(512, "width of the encoder's states, of each direction", minimum=1)
    encoder_layers: int = option(1, "encoder layers, each of both directions", minimum=1)
    decoder_cell: str = option(
        "gru", "recurrent cell of the decoder; conditional-gru attends between its two steps, others see --attend-with",
        names=DECODER_CELLS,
    )  # fmt: skip
    attend_with: str = option(
        "previous", "the state that attends: the previous one, the context vector then being an input of the step; the "
        "updated one, the context vector then being an input of the next step (conditional-gru has its own place)",
        names=ATTENDING_STATES,
    )  # fmt: skip
    attention_query: str = option(
        "output", "what of the state attends: the cell's output; the cell state, of cells that have one (lstm, ca-rnn)",
        names=QUERIES,
    )  # fmt: skip
    decoder_embed_dim: int = option(II("model.encoder_embed_dim"), "width of the target embeddings", minimum=1)
    decoder_hidden_size: int = option(II("model.encoder_hidden_size"), "width of the decoder's states", minimum=1)
    decoder_layers: int = option(1, "decoder layers; the first one attends", minimum=1)
    decoder_out_embed_dim: int = option(II("model.decoder_embed_dim"), "width of the deep output", minimum=1)
    deep_output: str = option(
        "tanh", "what the vocabulary is chosen from: tanh or maxout of state, token before and context; or the state",
        names=DEEP_OUTPUTS,
    )  # fmt: skip
    initial_state: str = option(
        "mean", "what the decoder's first state is made from: the mean of the encoder's states; its last state "
        "backward, at the first token", names=SUMMARIES,
    )  # fmt: skip
    attention_combination: str = option(
        "flat", "how attention to several sources is combined", names=ATTENTION_COMBINATIONS
    )
    combination_attention: str = option("bahdanau", "attention to a source", names=ATTENTION_SCORES)
    chi_embed_dim: int = option(
        0, "scores ca-att…, of one source: the indicator reads embeddings of the source tokens of its own, so wide, "
        "instead of the states that are added up; 0: the states", minimum=0,
    )  # fmt: skip
    attention_dim: int = option(
        512, "width of the space that attention scores are computed in, where they have one", minimum=1
    )
    decoder_attention_heads: int = option(1, "heads of the attention, where it has several", minimum=1)
    share_combination_projections: bool = option(
        False, "flat and hierarchical: make context vectors of the same projections as energies"
    )
    attention_sentinel: bool = option(
        False, "flat and hierarchical: the decoder's own state takes part in attention, behind a gate"
    )
    context_vector_dim: int = option(
        0, "width of the space that flat and hierarchical project context vectors to, and others, too, but a whole "
        "concatenation; 0: of the states of the first source", minimum=0,
    )  # fmt: skip
    concatenated_contexts: str = option(
        "projected", "concatenation: context vectors of all sources are projected together, or stay whole",
        names=CONTEXTS,
    )  # fmt: skip
    share_decoder_input_output_embed: bool = option(False, "share the decoder's input and output embeddings")
    share_all_embeddings: bool = option(False, "share all embeddings; needs one joined dictionary")


DocumentRNNConfig = flat_options("DocumentRNNConfig", __name__, [DocumentRNNOptions])


def combination_config(cfg: DocumentRNNOptions, source_dims: Tuple[int, ...]) -> CombinationConfig:
    """What the decoder's attention to sources of these widths is built from."""
    return CombinationConfig(
        query_dim=cfg.decoder_hidden_size,
        source_dims=source_dims,
        output_dim=cfg.context_vector_dim or source_dims[0],
        combination_attention=cfg.combination_attention,
        score_dim=cfg.attention_dim,
        heads=cfg.decoder_attention_heads,
        dropout=cfg.attention_dropout,
        share_combination_projections=cfg.share_combination_projections,
        attention_sentinel=cfg.attention_sentinel,
        evidence_dim=cfg.decoder_embed_dim + cfg.decoder_hidden_size if cfg.attention_sentinel else 0,
        chi_dim=cfg.chi_embed_dim,
        concatenated_contexts=str(cfg.concatenated_contexts),
    )


def _combination(cfg: DocumentRNNOptions) -> CombinationConfig:
    """What it is built from, before there are encoders of extra sources to ask for their widths."""
    return combination_config(cfg, (2 * cfg.encoder_hidden_size,) * (1 + len(extra_specs(cfg))))


def check(cfg: DocumentRNNOptions) -> None:
    """Looks for bad values and combinations.

    Raises:
        InputError: all that is wrong, by the options' flags.
    """
    problems = [*problems_of(cfg, DocumentRNNConfig), *extra_problems(cfg)]
    known = cfg.attention_combination in ATTENTION_COMBINATIONS and cfg.combination_attention in ATTENTION_SCORES
    if known and cfg.decoder_attention_heads >= 1:
        problems += ATTENTION_COMBINATIONS[cfg.attention_combination].problems(_combination(cfg))
    if str(cfg.deep_output) == "state" and cfg.decoder_out_embed_dim != cfg.decoder_hidden_size:
        problems.append(
            f"--decoder-out-embed-dim {cfg.decoder_out_embed_dim}: must be --decoder-hidden-size "
            f"{cfg.decoder_hidden_size} with --deep-output state"
        )
    if cfg.chi_embed_dim and extra_specs(cfg):
        problems.append("--chi-embed-dim: is of models with one source; leave --extra-sources out")
    cell = cfg.decoder_cell
    if str(cfg.attention_query) == "cell" and cell in DECODER_CELLS and RECURRENT_CELLS[plain_cell(cell)].parts < 2:
        problems.append(f"--attention-query cell: {cell} has no cell state beside its output; lstm and ca-rnn have")
    shared = cfg.share_all_embeddings or cfg.share_decoder_input_output_embed
    if shared and cfg.decoder_out_embed_dim != cfg.decoder_embed_dim:
        problems.append(
            f"--decoder-out-embed-dim {cfg.decoder_out_embed_dim}: must be --decoder-embed-dim {cfg.decoder_embed_dim} "
            "where the input and output embeddings are shared"
        )
    if cfg.share_all_embeddings and cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        problems.append("--share-all-embeddings: --encoder-embed-dim and --decoder-embed-dim differ")
    refuse(problems)


def remarks(cfg: DocumentRNNOptions, preset: Mapping[str, Any]) -> Iterator[str]:
    """Which options have no effect.

    Args:
        cfg: the options.
        preset: what the named architecture sets, which nobody asked for.
    """
    for names, reason in _unread(cfg):
        asked = {name for name in names if name not in preset or plain(getattr(cfg, name)) != preset[name]}
        yield from (f"{given} has no effect: {reason}" for given in changed(cfg, DocumentRNNConfig, asked))


def _unread(cfg: DocumentRNNOptions) -> Iterator[Tuple[Set[str], str]]:
    """Options that nothing in the model reads, and why."""
    if cfg.attention_combination != "concatenation":
        yield {"concatenated_contexts"}, f"--attention-combination is {cfg.attention_combination}"
    elif str(cfg.concatenated_contexts) == "whole":
        yield {"context_vector_dim"}, "--concatenated-contexts whole are not projected"
    score = ATTENTION_SCORES[cfg.combination_attention]
    if not ATTENTION_COMBINATIONS[cfg.attention_combination].reads_score_dim(_combination(cfg)):
        shared = "with --share-combination-projections scores are computed in the space of context vectors"
        yield {"attention_dim"}, shared if score.own_space else f"{cfg.combination_attention} has no space of its own"
    if not score.multi_head:
        yield {"decoder_attention_heads"}, f"--combination-attention {cfg.combination_attention} has one head"
    if cfg.decoder_cell == "conditional-gru":
        yield {"attend_with"}, "conditional-gru attends between its two steps"
    if not extra_specs(cfg):
        yield {"extra_encoder", "extra_encoder_layers", "share_extra_embeddings"}, "there are no --extra-sources"
    if str(cfg.token_embedding) == "plain":
        yield {"token_chi_dim"}, "--token-embedding is plain"
