"""One small model of every registered mechanism and layer."""

from dataclasses import dataclass, field
from typing import Dict, List

import torch

from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, DECODER_MECHANISMS, TARGET_MECHANISMS
from docnmt_fairseq.context.selected.memory_network import CONTEXT_ENCODERS
from docnmt_fairseq.layers.base import FEED_FORWARDS
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, TREE_MERGES
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES
from docnmt_fairseq.recurrent.cells import RECURRENT_CELLS
from docnmt_fairseq.recurrent.layers import CONDITIONAL_GRU
from tests.support import toy
from tests.support.marks import slow_except

WIDE = ["--encoder-embed-dim", "16", "--encoder-ffn-embed-dim", "24", "--encoder-attention-heads", "2"]
WIDE += ["--decoder-embed-dim", "16", "--decoder-ffn-embed-dim", "24", "--decoder-attention-heads", "2"]
WIDE += ["--encoder-layers", "2", "--decoder-layers", "2", "--dropout", "0"]
RECURRENT = ["--encoder-embed-dim", "12", "--encoder-hidden-size", "10", "--decoder-embed-dim", "12"]
RECURRENT += ["--attention-dim", "8", "--decoder-hidden-size", "10", "--dropout", "0"]
# Context is not zero at initialisation, and selection has a loss.
BEGUN = ["--context-init", "xavier"]
SELECTING = ["--context-top-t", "2", "--selection-loss", "1", "--selection-loss-phase", "always"]
BY_KEYS = ["--tree-order", "keys", "--tree-merge", "average", "--tree-beam", "3"]
SOURCES = "previous,text:mt,features:image"


@dataclass(frozen=True)
class Architecture:
    """Options of a model."""

    options: List[str]
    arch: str = "document_transformer"
    task: str = "document_translation"
    tiny: List[str] = field(default_factory=lambda: WIDE)

    def build(self, data_bin, *extra):
        """Returns (config, task, model)."""
        return toy.build(data_bin, *self.options, *extra, **self.kind)

    @property
    def kind(self) -> Dict[str, object]:
        """Keyword arguments of the helpers of ``toy``."""
        return {"arch": self.arch, "task": self.task, "tiny": self.tiny}


def _transformer(*options: str) -> Architecture:
    return Architecture([*BEGUN, *options])


def _recurrent(*options: str) -> Architecture:
    return Architecture([*options], arch="document_rnn", tiny=RECURRENT)


def _selects(mechanism: str) -> List[str]:
    return SELECTING if hasattr(CONTEXT_MECHANISMS[mechanism].Options, "context_top_t") else []


def _takes_sentinel(name: str, score: str) -> bool:
    return ATTENTION_COMBINATIONS[name].divides and not (name == "flat" and ATTENTION_SCORES[score].context_free)


def architectures() -> Dict[str, Architecture]:
    """Returns them by name; those that begin with ``sources`` need a data-bin with extra sources."""
    found = {
        "sentence": _transformer("--context", "none"),
        "positions": _transformer(
            "--word-positions", "learned", "--sentence-positions", "learned", "--paragraph-positions", "sinusoidal",
            "--decoder-learned-pos", "--layernorm-embedding", "--share-all-embeddings",
        ),
        "as Marian": _transformer(
            "--sinusoids", "marian", "--decoder-start", "pad", "--output-bias", "--activation-fn", "swish",
        ),
        "concatenation": Architecture(
            ["--segment-embeddings", "--concatenate-source", "3", "--concatenate-target", "2"],
            "concatenation_transformer", "concatenated_translation",
        ),
    }  # fmt: skip
    for name in CONTEXT_MECHANISMS.names():
        for place in CONTEXT_MECHANISMS[name].placements:
            options = ["--context-attention", name, "--context-placement", place, *_selects(name)]
            found[f"{name}, {place}"] = _transformer(*options)
    for name in DECODER_MECHANISMS.names():
        found[f"decoder {name}"] = _transformer("--decoder-context-attention", name)
    for name in TARGET_MECHANISMS.names():
        found[f"target {name}"] = _transformer("--target-context-attention", name)
    for name in SENTENCE_ENCODERS.names():
        found[f"sentence encoder {name}"] = _transformer(
            "--context-attention", "conditional", *SELECTING, "--sentence-encoder", name
        )
    for name in TREE_MERGES.names():
        found[f"tree {name}"] = _transformer(
            "--context-attention", "tree", *SELECTING, "--tree-merge", name, "--selection-score", "cumulative"
        )
    conditional = ["--context-attention", "conditional", *SELECTING]
    found["conditional, torch"] = _transformer(*conditional, "--context-kernel", "torch")
    found["conditional, top p"] = _transformer(*conditional, "--context-top-p", "0.6", "--context-always-keep-own")
    found["conditional, dense"] = _transformer(*conditional, "--context-top-t-anneal-start", "100")
    found["tree by keys"] = _transformer("--context-attention", "tree", *SELECTING, *BY_KEYS)
    memory = ["--context-attention", "memory", "--context-sentences", "2"]
    for name in CONTEXT_ENCODERS:
        found[f"memory {name}"] = _transformer(*memory, "--memory-rnn", name)
    found["memory, parallel, document"] = _transformer(
        *memory, "--memory-combination", "parallel", "--memory-scope", "document", "--memory-without-rnn"
    )
    found["memory, batch, means"] = _transformer(*memory, "--memory-scope", "batch", "--memory-without-attention")
    found["memory, attention's query"] = _transformer(*memory, "--memory-query", "attention")
    found["embeddings ca-em"] = _transformer("--token-embedding", "ca-em", "--token-chi-dim", "3")
    for name in FEED_FORWARDS.names():
        found[f"feed-forward {name}"] = _transformer("--feed-forward", name)
    pairs = [(name, "dot-product") for name in ATTENTION_COMBINATIONS.names()]
    for name, score in dict.fromkeys([*pairs, *(("flat", score) for score in ATTENTION_SCORES.names())]):
        options = ["--attention-combination", name, "--combination-attention", score]
        options += ["--attention-sentinel"] if _takes_sentinel(name, score) else []
        found[f"sources {name} {score}"] = _transformer("--extra-sources", SOURCES, *options)
    found["sources, shared"] = _transformer("--extra-sources", "previous:2", "--extra-encoder", "shared")
    for cell in RECURRENT_CELLS.names():
        found[f"rnn {cell}"] = _recurrent("--encoder-cell", cell, "--encoder-layers", "2")
    for cell in sorted([*RECURRENT_CELLS.names(), CONDITIONAL_GRU]):
        found[f"rnn decoder {cell}"] = _recurrent("--decoder-cell", cell, "--decoder-layers", "2")
    found["rnn updated state"] = _recurrent("--attend-with", "updated", "--attention-sentinel", "--decoder-layers", "2")
    found["rnn chi of embeddings"] = _recurrent("--combination-attention", "ca-att", "--chi-embed-dim", "3")
    found["rnn maxout"] = _recurrent("--deep-output", "maxout", "--initial-state", "last-backward")
    found["sources rnn"] = _recurrent(
        "--extra-sources", SOURCES, "--attention-combination", "hierarchical", "--attention-sentinel"
    )
    return found


ARCHITECTURES = architectures()
QUICK = (
    "sentence", "concatenation", "conditional, block", "memory, gated-feed-forward", "tree by keys", "target han",
    "sources flat dot-product", "rnn decoder gru",
)  # fmt: skip


def parameters(names=tuple(ARCHITECTURES)):
    """Returns names as parameters of tests, most of them slow."""
    return slow_except(QUICK, names)


def randomised(model, deviation=0.2):
    """Fills a model's parameters with random numbers, so that gradients reach all of them."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, deviation, generator=generator)
    return model
