"""Models by name: the one place that says with which options each is trained.

Hyper-parameters are those of the Transformer base model (Vaswani et al. 2017), which the published comparisons use; the
sizes are presets of the architectures.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import PARAGRAPH

COMMON = [
    "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--adam-eps", "1e-9", "--lr-scheduler", "inverse_sqrt",
    "--lr", "0.0007", "--warmup-updates", "4000", "--warmup-init-lr", "1e-7", "--criterion",
    "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--dropout", "0.1",
]  # fmt: skip
SMOKE = ["--lr", "0.003", "--warmup-updates", "10", "--dropout", "0"]  # instead, in a smoke run
# Vaswani et al. (2017) sec. 6.1; the allowance is for the targets of several sentences that concatenation has.
SEARCH: Dict[str, Any] = {"beam": 4, "lenpen": 0.6, "max_len_a": 1.5, "max_len_b": 50}
_MEMORY_3 = ["--context-sentences", "3", "--memory-combination", "parallel"]
_HAN_TARGET = ["--target-context-attention", "han"]
_LOOKING_BACK = [*_HAN_TARGET, "--context-sentences", "8"]
_EQUATION = ("--context-init", "xavier")  # gates without a learned scalar that begins at 0
# [M] as it is printed: the memory is made of the contexts of the whole batch (sec. 4.3), x' is bare attention (eq. 5).
_MEMORY_OF_PAPER = ["--memory-scope", "batch", "--memory-query", "attention"]


@dataclass(frozen=True)
class Model:
    """One model.

    Attributes:
        task: of fairseq.
        arch: architecture without its size.
        options: function of the number of updates.
        sentences: that a sample holds; batches hold so many times as many tokens, i.e. as many samples.
        to_begin: options that it needs in order to begin as a sentence-level model.
        from_scratch: those that it has if it does not.
        sees_context: whether it sees other sentences of the document.
        sized: whether the architecture by itself has published sizes, which it then has where no other are asked for.
    """

    task: str
    arch: str
    options: Callable[[int], List[str]] = field(default=lambda updates: [])
    sentences: int = 1
    to_begin: Tuple[str, ...] = ()
    from_scratch: Tuple[str, ...] = ()
    sees_context: bool = True
    sized: bool = False


def _narrowing(updates: int) -> List[str]:
    """The options of hard selection: all sentences for three quarters of the updates, then four."""
    schedule = ["--context-top-t-anneal-start", str(updates * 3 // 4), "--context-top-t-anneal-threshold", "0.9"]
    return ["--context-top-t", "4", *schedule, "--sentence-positions", "learned"]


def _concatenation(source: int, target: int) -> Model:
    sentences = ["--concatenate-source", str(source), "--concatenate-target", str(target), "--segment-embeddings"]
    known = ("--break-symbol", PARAGRAPH)  # dictionaries have it, so that embeddings keep their size
    return Model("concatenated_translation", "concatenation_transformer", lambda updates: sentences, source, known)


def _two_sources(prefix: str, extra: str, arch: str) -> Dict[str, Model]:
    """The models whose target words attend to the sentence and to an extra source, by combination ([L])."""

    def combined(name: str) -> Model:
        options = ["--extra-sources", extra, "--attention-combination", name]
        return Model("document_translation", arch, lambda updates: options, sees_context=not extra.startswith("text:"))

    return {f"{prefix}-{name}": combined(name) for name in ("concatenation", "flat", "hierarchical")}


def _table_of_combinations(prefix: str, extra: str, arch: str, plain: Sequence[str] = ()) -> Dict[str, Model]:
    """The rows of [L] Table 1: combination, shared projections, sentinel.

    Args:
        prefix: of their names.
        extra: the second source.
        arch: with the paper's sizes.
        plain: options of concatenation alone.
    """

    def row(options: List[str]) -> Model:
        options = ["--extra-sources", extra, *options]
        return Model("document_translation", arch, lambda updates: options, sees_context=False, sized=True)

    rows = {f"{prefix}-concatenation": row(["--attention-combination", "concatenation", *plain])}
    switches = {"shared": "--share-combination-projections", "sentinel": "--attention-sentinel"}
    for name in ("flat", "hierarchical"):
        for used in ((), ("sentinel",), ("shared",), ("shared", "sentinel")):
            options = ["--attention-combination", name, *(switches[one] for one in used)]
            rows["-".join((prefix, name, *used))] = row(options)
    return rows


def _mechanism(name: str, options: Callable[[int], List[str]] = lambda updates: []) -> Model:
    from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, GATED

    infix = f"_{name.replace('-', '_')}" if name else ""
    gated = not name or CONTEXT_MECHANISMS[name].placements[0] in GATED
    return Model(
        "document_translation", f"document_transformer{infix}", options, from_scratch=_EQUATION if gated else ()
    )


def models() -> Dict[str, Model]:
    """All models: those below, and one with the defaults of every other mechanism that is registered."""
    from docnmt_fairseq import context  # noqa: F401  (registers the mechanisms)
    from docnmt_fairseq.context.base import CONTEXT_MECHANISMS

    none = ["--context", "none"]
    one_source = [*none, "--attention-combination", "concatenation"]  # of one: the context vector as it is ([L] eq. 3)
    known = {
        "sentence": Model("document_translation", "document_transformer", lambda updates: none, sees_context=False),
        "concatenation": _concatenation(2, 1),
        "concatenation-2to2": _concatenation(2, 2),
        "concatenation-4to1": _concatenation(4, 1),
        "sentence-attention": _mechanism("sentence-encodings", lambda updates: ["--sentence-positions", "learned"]),
        "conditional": _mechanism("conditional", _narrowing),
        "conditional-target": replace(
            _mechanism("conditional", lambda updates: [*_narrowing(updates), *_LOOKING_BACK]), from_scratch=_EQUATION
        ),
        "tree": _mechanism("tree", _narrowing),
        "rnnsearch": Model("document_translation", "rnnsearch", lambda updates: none, sees_context=False),
        "memory-paper": _mechanism("memory", lambda updates: _MEMORY_OF_PAPER),
        "memory-3": _mechanism("memory", lambda updates: _MEMORY_3),
        "han-target": _mechanism("", lambda updates: _HAN_TARGET),
        "han-both": _mechanism("han", lambda updates: _HAN_TARGET),
        **_two_sources("previous", "previous:1", "document_transformer"),
        **_two_sources("mt", "text:mt", "document_transformer"),
        **_table_of_combinations("mt-rnn", "text:mt", "document_rnn_post_editing"),
        # With conditional GRUs concatenation lost 5 BLEU, so that its figure is of plain ones ([L] sec. 4.1).
        **_table_of_combinations(
            "image-rnn", "features:image", "document_rnn_multimodal", ["--decoder-cell", "gru-reset-before"]
        ),
        "caption-rnn": Model(
            "document_translation",
            "document_rnn_multimodal",
            lambda updates: one_source,
            sees_context=False,
            sized=True,
        ),
    }
    others = [name for name in CONTEXT_MECHANISMS.names() if name not in known]
    return {**known, **{name: _mechanism(name) for name in others}}


def model(name: str, where: str = "--models") -> Model:
    """A model.

    Args:
        name: of it.
        where: an option or a key that names it, for messages.

    Raises:
        InputError: there is none of that name.
    """
    known = models()
    if name not in known:
        raise InputError(f"{where} {name}: no such model; there are {', '.join(known)}")
    return known[name]
