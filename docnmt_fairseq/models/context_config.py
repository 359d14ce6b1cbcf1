"""Options of context mechanisms in ``document_transformer``, and what the mechanisms are built from by them."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, List, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from docnmt_fairseq import modules  # noqa: F401  (registers the mechanisms)
from docnmt_fairseq.modules.context import (
    ADDED,
    COMBINATIONS,
    CONTEXT_MECHANISMS,
    CONTEXT_SELECTIONS,
    MEMORY_SCOPES,
    PLACEMENTS,
    SELECTION_SCORES,
    ContextConfig,
    MemoryConfig,
    decoder_mechanisms,
    target_mechanisms,
)
from docnmt_fairseq.modules.kernels import kernel_names
from docnmt_fairseq.modules.memory_network import CONTEXT_READERS
from docnmt_fairseq.modules.sentence_encoders import SENTENCE_ENCODERS
from docnmt_fairseq.modules.tree_merges import TREE_MERGES
from docnmt_fairseq.options import option

if TYPE_CHECKING:
    from docnmt_fairseq.models.config import DocumentTransformerConfig


@dataclass
class ContextOptions(FairseqDataclass):
    """What looks across sentences, in encoder and decoder."""

    context_attention: str = option("none", f"context mechanism: none, {', '.join(CONTEXT_MECHANISMS.names())}")
    context_placement: Optional[ChoiceEnum(PLACEMENTS)] = option(
        None, "block: a residual sub-layer between self-attention and feed-forward; heads: additional heads of the "
        "self-attention; replace: instead of self-attention; gated-attention, gated-feed-forward, gated-output: a gate "
        "between context and self-attention, the feed-forward, or the layer's output (default: the mechanism's own)"
    )  # fmt: skip
    context_layers: List[int] = field(
        default_factory=list,
        metadata={
            "help": "encoder layers with context, from 0, e.g. 3,4,5 (default: the upper half; mechanisms with a gate: "
            "the last)"
        },
    )
    context_heads: int = option(
        0, "heads of the context mechanism in the encoder; 0: as many as self-attention (heads placement: 1)"
    )
    decoder_context_attention: str = option(
        "none", f"mechanism by which target words see the source document: none, {', '.join(decoder_mechanisms())}"
    )
    decoder_context_layers: List[int] = field(
        default_factory=list,
        metadata={"help": "decoder layers with context, from 0, e.g. 3,4,5 (default: the upper half)"},
    )
    target_context_attention: str = option(
        "none", "mechanism by which target words see the target sentences before theirs, behind a gate at the end of "
        f"the decoder: none, {', '.join(target_mechanisms())}; documents are then translated sentence by sentence"
    )  # fmt: skip
    sentence_encoder: str = option("source2token", f"sentence encoder: {', '.join(SENTENCE_ENCODERS.names())}")
    context_top_t: int = option(4, "sentences that every head and word keeps at the end of the schedule; 0: all")
    context_top_t_start: int = option(0, "sentences kept before narrowing begins; 0: all of the document")
    context_narrow_from: int = option(0, "update at which the number of kept sentences begins to fall")
    context_narrow_updates: int = option(0, "updates from the start value to --context-top-t; 0: at once")
    context_always_keep_own: bool = option(False, "keep a word's own sentence besides the selected ones")
    tree_merge: str = option(
        "source2token", f"how two nodes of the sentence tree make one: {', '.join(TREE_MERGES.names())}"
    )
    selection_score: ChoiceEnum(SELECTION_SCORES) = option(
        "level", "what decides which nodes of a height of the sentence tree are kept: level: their own relevance; "
        "cumulative: its sum from the root down"
    )  # fmt: skip
    context_kernel: str = option(
        "auto", f"who computes attention to selected sentences: {', '.join(kernel_names())}; torch switches compiled "
        "code off"
    )  # fmt: skip
    memory_contexts: int = option(
        0, "sentences that a sentence has as context in memory, han (source or target), context-aware and ca-att; 0: 3 "
        "for han, else 1"
    )  # fmt: skip
    memory_selection: ChoiceEnum(CONTEXT_SELECTIONS) = option(
        "previous", "which sentences these are: the previous, the next, others of the document at random, always the "
        "same for one --seed, or the earlier ones that are most similar by their vectors (docnmt embed neighbours)"
    )  # fmt: skip
    memory_combination: ChoiceEnum(COMBINATIONS) = option(
        "concatenate", "several context sentences in memory: concatenate: read as one, with breaks in between; "
        "parallel: each by itself, weighed by how alike they are"
    )  # fmt: skip
    memory_scope: ChoiceEnum(MEMORY_SCOPES) = option(
        "own", "whose context sentences a word sees in memory: its own sentence's; those of all sentences of the "
        "document; those of the whole batch, other documents included (in training only, else own)"
    )  # fmt: skip
    memory_rnn: ChoiceEnum(CONTEXT_READERS) = option(
        "gru", "what reads the context sentences in memory: an RNN, or a context-aware convolution"
    )
    memory_without_rnn: bool = option(False, "memory takes the context sentences' embeddings, unread (ablation)")
    memory_without_attention: bool = option(
        False, "memory takes the mean of each context sentence, instead of attending to its words (ablation)"
    )
    context_init: ChoiceEnum(("zero", "xavier")) = option(
        "zero", "output projection of added context sub-layers, and the context's share in gated ones: zero begins as "
        "the identity, i.e. as the sentence-level model; xavier: as usual"
    )  # fmt: skip


def context_placement(cfg: "DocumentTransformerConfig") -> str:
    """Returns where the encoder's context goes."""
    if cfg.context_placement is None and cfg.context_attention != "none":
        return CONTEXT_MECHANISMS[cfg.context_attention].placements[0]
    return str(cfg.context_placement)


def context_layers(cfg: "DocumentTransformerConfig") -> List[int]:
    """Returns the encoder layers that have context, ascending."""
    if cfg.context_attention == "none":
        return []
    top_only = CONTEXT_MECHANISMS[cfg.context_attention].top_layer_only
    default = range(cfg.encoder_layers - 1 if top_only else cfg.encoder_layers // 2, cfg.encoder_layers)
    return sorted(set(cfg.context_layers)) or list(default)


def memory_config(cfg: "DocumentTransformerConfig") -> MemoryConfig:
    """Returns what mechanisms with selected context sentences are built from."""
    return MemoryConfig(
        contexts=cfg.memory_contexts or None,
        selection=str(cfg.memory_selection),
        seed=cfg.seed,
        combination=str(cfg.memory_combination),
        scope=str(cfg.memory_scope),
        rnn=None if cfg.memory_without_rnn else str(cfg.memory_rnn),
        attention=not cfg.memory_without_attention,
    )


def context_config(cfg: "DocumentTransformerConfig") -> ContextConfig:
    """Returns what a context mechanism of this model is built from."""
    placement = context_placement(cfg)
    heads = cfg.context_heads or (1 if placement == "heads" else cfg.encoder_attention_heads)
    head_heads = cfg.encoder_attention_heads if placement == "heads" else heads
    return ContextConfig(
        embed_dim=cfg.encoder_embed_dim,
        heads=heads,
        head_dim=cfg.encoder_embed_dim // head_heads,
        dropout=cfg.attention_dropout,
        sentence_encoder=cfg.sentence_encoder,
        kept_sentences=cfg.context_top_t or None,
        kept_start=cfg.context_top_t_start or None,
        narrow_from=cfg.context_narrow_from,
        narrow_updates=cfg.context_narrow_updates,
        always_keep_own=cfg.context_always_keep_own,
        kernel=cfg.context_kernel,
        tree_merge=cfg.tree_merge,
        selection_score=str(cfg.selection_score),
        zero_init=cfg.context_init == "zero" and placement in ADDED,
        ffn_dim=cfg.encoder_ffn_embed_dim,
        activation=utils.get_activation_fn(str(cfg.activation_fn)),
        activation_dropout=cfg.activation_dropout,
        residual_dropout=cfg.dropout,
        memory=memory_config(cfg),
    )


def decoder_context_layers(cfg: "DocumentTransformerConfig") -> List[int]:
    """Returns the decoder layers that have context, ascending."""
    if cfg.decoder_context_attention == "none":
        return []
    return sorted(set(cfg.decoder_context_layers)) or list(range(cfg.decoder_layers // 2, cfg.decoder_layers))


def decoder_context_config(cfg: "DocumentTransformerConfig") -> ContextConfig:
    """Returns what a context mechanism in this model's decoder is built from: the decoder's own width and heads."""
    return replace(
        context_config(cfg),
        embed_dim=cfg.decoder_embed_dim,
        heads=cfg.decoder_attention_heads,
        head_dim=cfg.decoder_embed_dim // cfg.decoder_attention_heads,
        source_dim=cfg.encoder_embed_dim,
        source_heads=cfg.encoder_attention_heads,
        ffn_dim=cfg.decoder_ffn_embed_dim,
        zero_init=cfg.context_init == "zero",
    )


def target_context_config(cfg: "DocumentTransformerConfig") -> ContextConfig:
    """Returns what a mechanism for previous target sentences is built from: a search knows no others."""
    config = decoder_context_config(cfg)
    return replace(config, memory=replace(config.memory, selection="previous"))


def context_problems(cfg: "DocumentTransformerConfig") -> List[str]:
    """Returns every bad value of these options, and what does not go together, by option."""
    problems: List[str] = []

    def expect(condition: bool, message: str) -> None:
        if not condition:
            problems.append(message)

    mechanisms = ["none", *CONTEXT_MECHANISMS.names()]
    known = cfg.context_attention in mechanisms
    expect(known, f"--context-attention {cfg.context_attention}: must be one of {', '.join(mechanisms)}")
    kernels = kernel_names()
    expect(cfg.context_kernel in kernels, f"--context-kernel {cfg.context_kernel}: must be one of {', '.join(kernels)}")
    encoders = SENTENCE_ENCODERS.names()
    expect(cfg.sentence_encoder in encoders, f"--sentence-encoder {cfg.sentence_encoder}: must be one of {encoders}")
    merges = TREE_MERGES.names()
    expect(cfg.tree_merge in merges, f"--tree-merge {cfg.tree_merge}: must be one of {', '.join(merges)}")
    if known and cfg.context_attention != "none":
        placements = CONTEXT_MECHANISMS[cfg.context_attention].placements
        place = context_placement(cfg)
        expect(place in placements, f"--context-placement {place}: {cfg.context_attention} has {', '.join(placements)}")
        outside = [layer for layer in cfg.context_layers if not 0 <= layer < cfg.encoder_layers]
        expect(not outside, f"--context-layers {outside}: the encoder has layers 0 to {cfg.encoder_layers - 1}")
        expect(cfg.context_heads >= 0, f"--context-heads {cfg.context_heads}: must not be negative")
        heads = max(1, context_config(cfg).heads)
        divides = place == "heads" or cfg.encoder_embed_dim % heads == 0
        expect(divides, f"--context-heads {heads} does not divide --encoder-embed-dim {cfg.encoder_embed_dim}")
        counts = ("context_top_t", "context_top_t_start", "context_narrow_from", "context_narrow_updates")
        for name in (*counts, "memory_contexts"):
            value = getattr(cfg, name)
            expect(value >= 0, f"--{name.replace('_', '-')} {value}: must not be negative")
        wider = cfg.context_top_t_start == 0 or 0 < cfg.context_top_t <= cfg.context_top_t_start
        expect(wider, f"--context-top-t-start {cfg.context_top_t_start}: must not be below --context-top-t")
    mechanisms = ["none", *decoder_mechanisms()]
    known = cfg.decoder_context_attention in mechanisms
    message = f"--decoder-context-attention {cfg.decoder_context_attention}: must be one of {', '.join(mechanisms)}"
    expect(known, message)
    if known and cfg.decoder_context_attention != "none":
        outside = [layer for layer in cfg.decoder_context_layers if not 0 <= layer < cfg.decoder_layers]
        expect(not outside, f"--decoder-context-layers {outside}: the decoder has layers 0 to {cfg.decoder_layers - 1}")
    mechanisms = ["none", *target_mechanisms()]
    message = f"--target-context-attention {cfg.target_context_attention}: must be one of {', '.join(mechanisms)}"
    expect(cfg.target_context_attention in mechanisms, message)
    return problems
