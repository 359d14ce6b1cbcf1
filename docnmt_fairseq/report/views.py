"""What each mechanism of a model did for each token, as plain lists that a page can hold."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch
from docnmt_fairseq.layers.capture import SENTENCES, ContextShare, Evidence, NodeRelevance, Relevance, Weights
from docnmt_fairseq.report.inspection import Inspection, Piece, Side

LEAST_WEIGHT = 0.005  # smaller weights are left out
MOST_TOKENS = 8  # so many tokens are kept for each token and head, those with the largest weights
RELEVANCE = "relevance R"

Entries = Dict[int, List[List[Tuple[int, float]]]]  # by token of the document, by head: (what it goes to, how much)
Node = Tuple[int, int, float, int, int]  # height, number there, relevance, first and last sentence below


@dataclass
class View:
    """One mechanism.

    Attributes:
        name: of the module, such as ``encoder.layers.3.context``.
        mechanism: its name in the registry.
        side: whose tokens look, ``source`` or ``target``; ``looks_at``: whose sentences and tokens they look at.
        heads: how many heads its weights have; 0: it reported nothing.
        sentences: entries over sentences, by what they measure.
        tokens: entries over tokens, likewise.
        nodes: of a tree, by token and head, those on the way to kept sentences: see :data:`Node`.
        share: by token, the mean over features of what the gate lets through; tokens without context are missing.
    """

    name: str
    mechanism: str
    side: str
    looks_at: str
    heads: int = 0
    sentences: Dict[str, Entries] = field(default_factory=dict)
    tokens: Dict[str, Entries] = field(default_factory=dict)
    nodes: Dict[int, List[List[Node]]] = field(default_factory=dict)
    cumulative: bool = False
    share: Dict[int, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Where it stands and what it is, for people."""
        part, *path = self.name.split(".")
        number = next((int(step) + 1 for step in path if step.isdigit()), None)
        where = "end of the decoder" if number is None else f"{part} layer {number}"
        return f"{where}: {self.mechanism}"

    def to_json(self) -> Dict[str, Any]:
        """What the page's script reads; lists of entries are in the order of the tokens."""

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


def views_of(model: nn.Module, inspection: Inspection) -> List[View]:
    """A view for each mechanism of the model, in the order of the computation; of all pieces together."""
    modules, views = dict(model.named_modules()), []
    names = {CONTEXT_MECHANISMS[name]: name for name in CONTEXT_MECHANISMS.names()}
    for name, module in modules.items():
        if not isinstance(module, ContextMechanism):
            continue
        side = "source" if name.startswith("encoder.") else "target"
        looks_at = "target" if name.startswith("decoder.target_context") else "source"
        view = View(name, names.get(type(module), type(module).__name__), side, looks_at)
        parent = name.rpartition(".")[0]
        gate = modules.get(f"{parent}.context_gate") or modules.get(f"{parent}.gate")
        for piece in inspection.pieces:
            evidence = piece.recording.of(module) + ([] if gate is None else piece.recording.of(gate))
            _add(view, evidence, piece)
        views.append(view)
    return views


def _add(view: View, evidence: List[Evidence], piece: Piece) -> None:
    side, looks_at = (getattr(piece, name) for name in (view.side, view.looks_at))
    over_sentences = any(isinstance(e, Weights) and e.over == SENTENCES for e in evidence)
    kept = next((e.scores for e in evidence if isinstance(e, Relevance)), None)
    for e in evidence:
        if isinstance(e, Relevance):
            _merge(view.sentences, RELEVANCE, largest_entries(e.scores, side, looks_at.sentences, -torch.inf))
        elif isinstance(e, Weights) and e.over == SENTENCES:
            _merge(view.sentences, e.name, largest_entries(e.weights, side, looks_at.sentences, LEAST_WEIGHT))
        elif isinstance(e, Weights):
            weights = e.weights[:, : looks_at.rows.total]  # without breaks
            _merge(view.tokens, e.name, largest_entries(weights, side, looks_at.tokens, LEAST_WEIGHT, MOST_TOKENS))
            if not over_sentences:
                mass = sum_by_sentence(weights, looks_at.rows)
                _merge(view.sentences, e.name, largest_entries(mass, side, looks_at.sentences, LEAST_WEIGHT))
        elif isinstance(e, NodeRelevance) and kept is not None:
            view.cumulative = e.cumulative
            trees = piece.layout.plan(TreesOfBatch())
            view.nodes.update(_paths(e.scores, kept, side, looks_at.sentences, trees))
        elif isinstance(e, ContextShare):
            for token, decoded, mean in zip(side.tokens, side.decoded, e.share.float().mean(1).tolist()):
                if decoded and mean == mean:  # NaN: no context
                    view.share[int(token)] = round(mean, 3)
        if isinstance(e, (Weights, Relevance)):
            heads = (e.weights if isinstance(e, Weights) else e.scores).size(2)
            view.heads = max(view.heads, heads)


def _merge(measures: Dict[str, Entries], name: str, found: Entries) -> None:
    measures.setdefault(name, {}).update(found)


def sum_by_sentence(weights: Tensor, rows: Ragged) -> Tensor:
    """The sums over the tokens of each sentence, [M, R, H], of weights [M, N, H]."""
    mass = weights.new_zeros(len(weights), rows.rows, weights.size(2))
    return mass.index_add(1, rows.item_row, weights)


def largest_entries(values: Tensor, side: Side, keys: np.ndarray, least: float, most: Optional[int] = None) -> Entries:
    """What is above ``least`` of [M, K, H], the largest first, equals in their order.

    Args:
        values: weights, or relevance.
        side: of the M tokens; those of context-only sentences are left out.
        keys: [K] numbers in the document.
        least: what is not above is left out.
        most: entries of a token and head.
    """
    ordered, place = torch.sort(values.float().transpose(1, 2), dim=-1, descending=True, stable=True)  # [M, H, K]
    counts = (ordered > least).sum(-1)
    if most is not None:
        counts = counts.clamp(max=most)
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
    """The nodes between the root and the kept sentences, root first.

    Args:
        scores: of nodes, [N, nodes, H].
        kept: relevance of sentences, [N, R, H], −∞ where not kept. One document a batch.
        side: of the N tokens.
        sentences: [R] their numbers in the document.
        trees: of the batch.
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
