"""Options of ``document_rnn``: one flat dataclass, so that the command line and YAML take the same names."""

from dataclasses import dataclass

from fairseq.dataclass import ChoiceEnum
from omegaconf import II

from docnmt_fairseq import modules  # noqa: F401  (registers cells, scores and combinations)
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.alternating import AlternatingConfig, alternating_problems
from docnmt_fairseq.models.combination_config import OPTIONS
from docnmt_fairseq.models.further_config import FurtherSourcesConfig, further_problems, further_specs
from docnmt_fairseq.models.trained_view import TrainedView
from docnmt_fairseq.modules.attention_combination.contract import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.modules.attention_combination.scores import ATTENTION_SCORES
from docnmt_fairseq.modules.recurrent.attentive import decoder_cells
from docnmt_fairseq.modules.recurrent.contract import RECURRENT_CELLS
from docnmt_fairseq.modules.recurrent.deep_output import DEEP_OUTPUTS
from docnmt_fairseq.modules.recurrent.layers import SUMMARIES
from docnmt_fairseq.options import option


@dataclass
class DocumentRNNConfig(FurtherSourcesConfig, AlternatingConfig, TrainedView):
    """Sizes and regularisation, the cells, and how the decoder attends."""

    dropout: float = option(0.1, "dropout probability of embeddings, between layers and before the output")
    attention_dropout: float = option(0.0, "dropout probability of attention weights")
    encoder_cell: str = option("gru", f"recurrent cell of the encoder: {', '.join(RECURRENT_CELLS.names())}")
    encoder_embed_dim: int = option(512, "width of the source embeddings")
    encoder_hidden_size: int = option(512, "width of the encoder's states, of each direction")
    encoder_layers: int = option(1, "encoder layers, each of both directions")
    decoder_cell: str = option(
        "gru", f"recurrent cell of the decoder: {', '.join(decoder_cells())}; conditional-gru attends between its two "
        "steps, the others before theirs"
    )  # fmt: skip
    decoder_embed_dim: int = option(II("model.encoder_embed_dim"), "width of the target embeddings")
    decoder_hidden_size: int = option(II("model.encoder_hidden_size"), "width of the decoder's states")
    decoder_layers: int = option(1, "decoder layers; the first one attends")
    decoder_out_embed_dim: int = option(II("model.decoder_embed_dim"), "width of the deep output")
    deep_output: ChoiceEnum(DEEP_OUTPUTS) = option(
        "tanh", "what the vocabulary is chosen from: tanh or maxout of state, word before and context"
    )
    initial_state: ChoiceEnum(SUMMARIES) = option(
        "mean", "what the decoder's first state is made from: the mean of the encoder's states; its last state "
        "backward, at the first word"
    )  # fmt: skip
    attention_combination: str = option(
        "flat", f"how attention to several sources is combined: {', '.join(ATTENTION_COMBINATIONS.names())}"
    )
    combination_attention: str = option("bahdanau", f"attention to a source: {', '.join(ATTENTION_SCORES.names())}")
    attention_dim: int = option(512, "width of the space that attention scores are computed in, where they have one")
    decoder_attention_heads: int = option(1, "heads of the attention, where it has several")
    share_combination_projections: bool = option(
        False, "flat and hierarchical: make context vectors of the same projections as energies"
    )
    attention_sentinel: bool = option(
        False, "flat and hierarchical: the decoder's own state takes part in attention, behind a gate"
    )
    share_decoder_input_output_embed: bool = option(False, "share the decoder's input and output embeddings")
    share_all_embeddings: bool = option(False, "share all embeddings; needs one joined dictionary")


def combination_config(cfg: DocumentRNNConfig, source_dims: "tuple[int, ...]") -> CombinationConfig:
    """Returns what the decoder's attention to sources of these widths is built from."""
    return CombinationConfig(
        query_dim=cfg.decoder_hidden_size,
        source_dims=source_dims,
        output_dim=source_dims[0],
        attention=cfg.combination_attention,
        score_dim=cfg.attention_dim,
        heads=cfg.decoder_attention_heads,
        dropout=cfg.attention_dropout,
        share_projections=cfg.share_combination_projections,
        sentinel=cfg.attention_sentinel,
        evidence_dim=cfg.decoder_embed_dim + cfg.decoder_hidden_size if cfg.attention_sentinel else 0,
    )


def check(cfg: DocumentRNNConfig) -> None:
    """Raises one :class:`InputError` that lists every bad value and combination by its option."""
    problems = [*further_problems(cfg), *alternating_problems(cfg)]

    def expect(condition: bool, message: str) -> None:
        if not condition:
            problems.append(message)

    names = {
        "encoder_cell": RECURRENT_CELLS.names(),
        "decoder_cell": decoder_cells(),
        "attention_combination": ATTENTION_COMBINATIONS.names(),
    }
    for name, known in names.items():
        value = getattr(cfg, name)
        expect(value in known, f"--{name.replace('_', '-')} {value}: must be one of {', '.join(known)}")
    if cfg.attention_combination in ATTENTION_COMBINATIONS.names() and cfg.decoder_attention_heads >= 1:
        combination = combination_config(cfg, (2 * cfg.encoder_hidden_size,) * (1 + len(further_specs(cfg))))
        for name, message in ATTENTION_COMBINATIONS[cfg.attention_combination].problems(combination):
            problems.append(f"{OPTIONS[name]}: {message}")
    sizes = [f"{side}_{size}" for side in ("encoder", "decoder") for size in ("embed_dim", "hidden_size", "layers")]
    for name in (*sizes, "decoder_out_embed_dim", "decoder_attention_heads", "attention_dim"):
        expect(getattr(cfg, name) >= 1, f"--{name.replace('_', '-')} {getattr(cfg, name)}: must be at least 1")
    shared = cfg.share_all_embeddings or cfg.share_decoder_input_output_embed
    same = cfg.decoder_out_embed_dim == cfg.decoder_embed_dim
    expect(
        same or not shared,
        f"--decoder-out-embed-dim {cfg.decoder_out_embed_dim}: must be --decoder-embed-dim {cfg.decoder_embed_dim} "
        "where the input and output embeddings are shared",
    )
    expect(
        not cfg.share_all_embeddings or cfg.encoder_embed_dim == cfg.decoder_embed_dim,
        "--share-all-embeddings: --encoder-embed-dim and --decoder-embed-dim differ",
    )
    if problems:
        raise InputError("; ".join(problems))
