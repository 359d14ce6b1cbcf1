"""Models of the recipes by name, with their training options.

Hyper-parameters are those of the Transformer base model (Vaswani et al. 2017), which the published comparisons use; the
sizes are presets of the architectures.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Sequence, Tuple

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.errors import InputError

COMMON = [
    "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--adam-eps", "1e-9", "--lr-scheduler", "inverse_sqrt",
    "--lr", "0.0007", "--warmup-updates", "4000", "--warmup-init-lr", "1e-7", "--criterion",
    "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--dropout", "0.1",
]  # fmt: skip
SMOKE = ["--lr", "0.003", "--warmup-updates", "10", "--dropout", "0"]  # overrides for smoke runs
# Vaswani et al. (2017) sec. 6.1; max_len_b leaves room for the targets of several concatenated sentences.
SEARCH: Dict[str, Any] = {"beam": 4, "lenpen": 0.6, "max_len_a": 1.5, "max_len_b": 50}
_TASK = "document_translation"
_MEMORY_3 = ["--context-sentences", "3", "--memory-combination", "parallel"]
_HAN_TARGET = ["--target-context-attention", "han"]
_TARGET_CONTEXT = [*_HAN_TARGET, "--context-sentences", "8"]
_TOP_4 = ["--context-top-t", "4", "--sentence-positions", "learned"]
_CLIPPED = ("--clip-norm", "1")  # without it gradients of GRUs explode
_PAPER_GATE = ("--context-init", "xavier")  # gate of the papers, without a learned scalar that is 0 at first
# [M] as printed: the memory consists of the contexts of the whole batch (sec. 4.3), x' is bare attention (eq. 5). A
# sample is a sentence with the previous one: in batches of whole documents, a sentence would be in its own memory.
_MEMORY_OF_PAPER = ["--memory-scope", "batch", "--memory-query", "attention", "--max-document-sentences", "1",
                    "--context-overlap", "1"]  # fmt: skip


@dataclass(frozen=True)
class Model:
    """Model of a recipe.

    Attributes:
        task: fairseq task.
        arch: architecture without its size.
        options: function from the number of updates to options of fairseq-train.
        sentences: sentences per sample; batches hold that many times as many tokens, i.e. as many samples.
        to_begin: options needed to start from a sentence-level model.
        from_scratch: options when training from scratch.
        sees_context: whether the model sees other sentences of the document.
        sized: whether the architecture without a size has published sizes, which are then the default.
    """

    task: str
    arch: str
    options: Callable[[int], List[str]] = field(default=lambda updates: [])
    sentences: int = 1
    to_begin: Tuple[str, ...] = ()
    from_scratch: Tuple[str, ...] = ()
    sees_context: bool = True
    sized: bool = False


def _annealed(updates: int) -> List[str]:
    """Options of hard selection: all sentences for three quarters of the updates, then the top four."""
    schedule = ["--context-top-t-anneal-start", str(updates * 3 // 4), "--context-top-t-anneal-threshold", "0.9"]
    return ["--context-top-t", "4", *schedule, "--sentence-positions", "learned"]


def _fixed(options: Sequence[str]) -> Callable[[int], List[str]]:
    return lambda updates: list(options)


def _concatenation(source: int, target: int) -> Model:
    sizes = ["--concatenate-source", str(source), "--concatenate-target", str(target), "--segment-embeddings"]
    known = ("--break-symbol", PARAGRAPH)  # in the dictionary already, so that the embeddings keep their size
    return Model("concatenated_translation", "concatenation_transformer", _fixed(sizes), source, known)


def _two_sources(prefix: str, extra: str) -> Dict[str, Model]:
    """Models that attend to the sentence and an extra source, by attention combination ([L])."""
    context, option = not extra.startswith("text:"), ["--extra-sources", extra, "--attention-combination"]
    return {
        f"{prefix}-{name}": Model(_TASK, "document_transformer", _fixed([*option, name]), sees_context=context)
        for name in ("concatenation", "flat", "hierarchical")
    }


def _combination_table(prefix: str, extra: str, arch: str, concatenation: Sequence[str] = ()) -> Dict[str, Model]:
    """Rows of [L] Table 1: combination, shared projections, sentinel; ``concatenation``: options of that row only."""

    def row(*options: str) -> Model:
        options = ("--extra-sources", extra, "--attention-combination", *options)
        return Model(_TASK, arch, _fixed(options), sees_context=False, sized=True)

    rows = {f"{prefix}-concatenation": row("concatenation", *concatenation)}
    switches = {"shared": "--share-combination-projections", "sentinel": "--attention-sentinel"}
    for name in ("flat", "hierarchical"):
        for used in ((), ("sentinel",), ("shared",), ("shared", "sentinel")):
            rows["-".join((prefix, name, *used))] = row(name, *(switches[one] for one in used))
    return rows


def _mechanism(name: str, options: Callable[[int], List[str]] = lambda updates: []) -> Model:
    """Model of a mechanism or preset; without a name, only with what ``options`` add to the decoder."""
    from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, GATED

    infix = f"_{name.replace('-', '_')}" if name else ""
    gated = not name or (name in CONTEXT_MECHANISMS and CONTEXT_MECHANISMS[name].placements[0] in GATED)
    return Model(_TASK, f"document_transformer{infix}", options, from_scratch=_PAPER_GATE if gated else ())


def models() -> Dict[str, Model]:
    """Returns all models: those below, and one with default options for every other registered mechanism."""
    from docnmt_fairseq import context  # noqa: F401  (registers the mechanisms)
    from docnmt_fairseq.context.base import CONTEXT_MECHANISMS

    none = ["--context", "none"]
    single_source = [*none, "--attention-combination", "concatenation"]  # of one source: its context vector ([L] eq. 3)
    known = {
        "sentence": Model(_TASK, "document_transformer", _fixed(none), sees_context=False),
        "concatenation": _concatenation(2, 1),
        "concatenation-2to2": _concatenation(2, 2),
        "concatenation-4to1": _concatenation(4, 1),
        "sentence-attention": _mechanism("sentence-encodings", _fixed(["--sentence-positions", "learned"])),
        "conditional": _mechanism("conditional", _annealed),
        "conditional-target": replace(
            _mechanism("conditional", lambda updates: [*_annealed(updates), *_TARGET_CONTEXT]), from_scratch=_PAPER_GATE
        ),
        "tree": _mechanism("tree", _annealed),
        "conditional-paper": _mechanism("conditional-paper", _fixed(_TOP_4)),
        "tree-paper": _mechanism("tree-paper", _fixed(_TOP_4)),
        "rnnsearch": Model(_TASK, "rnnsearch", _fixed(none), from_scratch=_CLIPPED, sees_context=False),
        "memory-paper": replace(_mechanism("memory", _fixed(_MEMORY_OF_PAPER)), sentences=2),
        "memory-3": _mechanism("memory", _fixed(_MEMORY_3)),
        "han-target": _mechanism("", _fixed(_HAN_TARGET)),
        "han-both": _mechanism("han", _fixed(_HAN_TARGET)),
        **_two_sources("previous", "previous:1"),
        **_two_sources("mt", "text:mt"),
        **_combination_table("mt-rnn", "text:mt", "document_rnn_post_editing"),
        # With conditional GRUs concatenation lost 5 BLEU: the published figure is for plain GRUs ([L] sec. 4.1).
        **_combination_table(
            "image-rnn", "features:image", "document_rnn_multimodal", ["--decoder-cell", "gru-reset-before"]
        ),
        "zeng": Model(_TASK, "document_rnn_zeng", _fixed(none), sees_context=False, sized=True),
        "caption-rnn": Model(_TASK, "document_rnn_multimodal", _fixed(single_source), sees_context=False, sized=True),
    }
    others = [name for name in CONTEXT_MECHANISMS.names() if name not in known]
    return {**known, **{name: _mechanism(name) for name in others}}


def model(name: str, where: str = "--models") -> Model:
    """Returns a model; ``where``: option or key that names it, for error messages."""
    known = models()
    if name not in known:
        raise InputError(f"{where} {name}: unknown model; known: {', '.join(known)}")
    return known[name]
