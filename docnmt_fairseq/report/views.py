"""Views of context mechanisms: selected and weighted context of each token, as plain lists."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch
from docnmt_fairseq.layers.capture import SENTENCES, ContextShare, Evidence, NodeRelevance, Relevance, Weights
from docnmt_fairseq.report.inspection import Chunk, Inspection, Side

MIN_WEIGHT = 0.005
MAX_TOKENS = 8  # attended tokens of each token and head, by weight
RELEVANCE = "relevance R"

Entries = Dict[int, List[List[Tuple[int, float]]]]  # by token of the document and head: (index, value)
Node = Tuple[int, int, float, int, int]  # height, index at this height, relevance, first and last sentence below


@dataclass
class View:
    """View of one mechanism.

    Attributes:
        name: module, such as ``encoder.layers.3.context``.
        mechanism: name in the registry.
        side, looks_at: side of the attending and of the attended tokens, ``source`` or ``target``.
        heads: number of heads; 0: nothing was captured.
        sentences, tokens: entries over sentences and over tokens, by measure.
        nodes: tree nodes on the paths to selected sentences, by token and head.
        cumulative: whether the relevance of nodes is summed from the root.
        share: mean of the gate over features, by token; tokens without context are missing.
    """

    name: str
    mechanism: str
    side: str
    looks_at: str
    heads: int = 0
    sentences: Dict[str, Entries] = field(default_factory=lambda: defaultdict(dict))
    tokens: Dict[str, Entries] = field(default_factory=lambda: defaultdict(dict))
    nodes: Dict[int, List[List[Node]]] = field(default_factory=dict)
    cumulative: bool = False
    share: Dict[int, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Position in the model and mechanism, for display."""
        part, *path = self.name.split(".")
        number = next((int(step) + 1 for step in path if step.isdigit()), None)
        position = "end of the decoder" if number is None else f"{part} layer {number}"
        return f"{position}: {self.mechanism}"

    def to_json(self) -> Dict[str, Any]:
        """Data of the script; entries are in the order of the tokens."""

        def rows(entries: Dict[int, Any]) -> Dict[str, Any]:
            return {str(token): entries[token] for token in sorted(entries)}

        return {
            "title": self.title,
            "side": self.side,
            "looksAt": self.looks_at,
            "heads": self.heads,
            "sentences": {name: rows(entries) for name, entries in self.sentences.items()},
            "words": {name: rows(entries) for name, entries in self.tokens.items()},
            "nodes": rows(self.nodes),
            "cumulative": self.cumulative,
            "share": rows(self.share),
        }


def mechanism_name(module: nn.Module) -> str:
    """Name of a mechanism in the registry, or of its class."""
    names = (name for name in CONTEXT_MECHANISMS.names() if CONTEXT_MECHANISMS[name] is type(module))
    return next(names, type(module).__name__)


def views_of(model: nn.Module, inspection: Inspection) -> List[View]:
    """View of each mechanism of the model, over all chunks, in the order of computation."""
    modules, views = dict(model.named_modules()), []
    for name, module in modules.items():
        if not isinstance(module, ContextMechanism):
            continue
        side = "source" if name.startswith("encoder.") else "target"
        looks_at = "target" if name.startswith("decoder.target_context") else "source"
        view = View(name, mechanism_name(module), side, looks_at)
        parent = name.rpartition(".")[0]
        gate = modules.get(f"{parent}.context_gate") or modules.get(f"{parent}.gate")
        for chunk in inspection.chunks:
            evidence = chunk.capture.of(module) + ([] if gate is None else chunk.capture.of(gate))
            _add(view, evidence, chunk)
        views.append(view)
    return views


def _add(view: View, evidence: List[Evidence], chunk: Chunk) -> None:
    side, looks_at = (getattr(chunk, name) for name in (view.side, view.looks_at))
    over_sentences = any(isinstance(e, Weights) and e.over == SENTENCES for e in evidence)
    kept = next((e.scores for e in evidence if isinstance(e, Relevance)), None)
    for e in evidence:
        if isinstance(e, Relevance):
            view.sentences[RELEVANCE].update(largest_entries(e.scores, side, looks_at.sentences, -torch.inf))
        elif isinstance(e, Weights) and e.over == SENTENCES:
            view.sentences[e.name].update(largest_entries(e.weights, side, looks_at.sentences, MIN_WEIGHT))
        elif isinstance(e, Weights):
            weights = e.weights[:, : looks_at.rows.total]  # without break tokens
            view.tokens[e.name].update(largest_entries(weights, side, looks_at.tokens, MIN_WEIGHT, MAX_TOKENS))
            if not over_sentences:
                mass = sum_by_sentence(weights, looks_at.rows)
                view.sentences[e.name].update(largest_entries(mass, side, looks_at.sentences, MIN_WEIGHT))
        elif isinstance(e, NodeRelevance) and kept is not None:
            view.cumulative = e.cumulative
            trees = chunk.layout.plan(TreesOfBatch())
            view.nodes.update(_paths(e.scores, kept, side, looks_at.sentences, trees))
        elif isinstance(e, ContextShare):
            for token, decoded, mean in zip(side.tokens, side.decoded, e.share.float().mean(1).tolist()):
                if decoded and mean == mean:  # NaN: no context
                    view.share[int(token)] = round(mean, 3)
        if isinstance(e, (Weights, Relevance)):
            heads = (e.weights if isinstance(e, Weights) else e.scores).size(2)
            view.heads = max(view.heads, heads)


def sum_by_sentence(weights: Tensor, rows: Ragged) -> Tensor:
    """Sums weights [M, N, H] over the tokens of each sentence, [M, R, H]."""
    mass = weights.new_zeros(len(weights), rows.rows, weights.size(2))
    return mass.index_add(1, rows.item_row, weights)


def largest_entries(
    values: Tensor, side: Side, keys: np.ndarray, minimum: float, limit: Optional[int] = None
) -> Entries:
    """Entries of [M, K, H] above ``minimum``, in descending order; ties keep their order.

    Args:
        values: weights or relevance.
        side: side of the M tokens; tokens of context-only sentences are skipped.
        keys: [K] indices in the document.
        minimum: lower bound, exclusive.
        limit: maximum number of entries of a token and head.
    """
    ordered, place = torch.sort(values.float().transpose(1, 2), dim=-1, descending=True, stable=True)  # [M, H, K]
    counts = (ordered > minimum).sum(-1)
    if limit is not None:
        counts = counts.clamp(max=limit)
    found: Entries = {}
    for i in np.flatnonzero(side.decoded):
        found[int(side.tokens[i])] = [
            [(int(keys[k]), round(v, 3)) for k, v in zip(place[i, h, :n].tolist(), ordered[i, h, :n].tolist())]
            for h, n in enumerate(counts[i].tolist())
        ]
    return found


def _paths(
    scores: Tensor, kept: Tensor, side: Side, sentences: np.ndarray, trees: SentenceTrees
) -> Dict[int, List[List[Node]]]:
    """Nodes between the root and the selected sentences, root first; the batch has one document.

    ``scores`` is the relevance of nodes, [N, nodes, H]; ``kept`` that of sentences, [N, R, H], −∞ if not selected;
    ``sentences`` has their indices in the document, [R].
    """
    found: Dict[int, List[List[Node]]] = {}
    leaves_of, heights, first = kept.isfinite(), len(trees.sizes), trees.first[:, 0]
    for i in np.flatnonzero(side.decoded):
        found[int(side.tokens[i])] = []
        for h in range(scores.size(2)):
            leaves = leaves_of[i, :, h].nonzero().flatten().tolist()
            nodes: List[Node] = []
            for height in reversed(range(heights)):
                for j in sorted({leaf >> height for leaf in leaves}):
                    below = sentences[j << height : (j + 1) << height]
                    relevance = round(float(scores[i, first[height] + j, h]), 3)
                    nodes.append((height, j, relevance, int(below[0]), int(below[-1])))
            found[int(side.tokens[i])].append(nodes)
    return found
