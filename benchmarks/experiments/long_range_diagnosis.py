"""Does a word's walk down the tree find the sentence that decides it, and if not, at which height is its path cut?

    python -m benchmarks.experiments.long_range_diagnosis --work WORK TRAINING...

TRAINING is one of long_range.py, of the tree.

For the words of the long test documents that only context decides, in every head of every layer with context: how much
the word attends to its deciding sentence if everything is kept; whether that sentence is among the t whose cumulative
relevance is highest of all (a best-first search); whether the walk finds it, cut by the scores of each level or by
cumulative ones. The figures go into long_range.py's report, of the head that attends most.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import torch
from torch import Tensor

from benchmarks.experiments.long_range_report import SHARES, write
from benchmarks.lib.machine import RESULTS, ROOT, command
from benchmarks.lib.store import Store
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.context.conditional.tree import SentenceTrees, TreesOfBatch, construct, path_sums
from docnmt_fairseq.context.conditional.tree_attention import TreeAttention
from docnmt_fairseq.corpus.synth.table import Case, read_cases
from docnmt_fairseq.recipes.training import LAST

Figures = Dict[str, List[Tensor]]  # of :func:`measure`, document by document


def walk(scores: List[Tensor], t: int) -> List[Tensor]:
    """Returns which nodes of every height the walk keeps: the slow reference, every node's score at hand.

    Args:
        scores: [..., nodes] of every height of one document, leaves first.
        t: nodes kept of a height.
    """
    kept = [torch.ones_like(scores[-1], dtype=torch.bool)]
    for of_height in reversed(scores[:-1]):
        alive = kept[-1].repeat_interleave(2, dim=-1)[..., : of_height.size(-1)]
        best = of_height.masked_fill(~alive, -torch.inf).sort(dim=-1, descending=True, stable=True).indices
        kept.append(torch.zeros_like(alive).scatter(-1, best[..., :t], True) & alive)
    return kept[::-1]


def cut_height(scores: List[Tensor], t: int, leaf: Tensor) -> Tensor:
    """Returns the height at which the walk leaves the path to a leaf, −1 where it finds it: [W, H].

    Args:
        scores: [W, H, nodes] of every height, of W words.
        t: nodes kept of a height.
        leaf: [W] the leaf of each word.
    """
    kept = [_at(of_height, leaf >> height) for height, of_height in enumerate(walk(scores, t))]
    return sum(on_path.logical_not().long() for on_path in kept) - 1


def _at(values: Tensor, node: Tensor) -> Tensor:
    return values.gather(-1, node[:, None, None].expand(*values.shape[:2], 1)).squeeze(-1)


@torch.no_grad()
def measure(
    attention: TreeAttention, x: Tensor, layout: DocumentLayout, words: Dict[int, List[Tuple[int, int]]], t: int
) -> Iterator[Dict[str, Tensor]]:
    """Yields the figures of every document that has words to look at: [W, H] each, "spread" [W, heights, H].

    Args:
        attention: the mechanism.
        x: [N, d] what it is given.
        layout: the batch.
        words: of every document: items of the batch, and the places of their deciding sentences in the document.
        t: sentences kept.
    """
    trees, scale = layout.plan(TreesOfBatch()), (attention.q_proj.out_features // attention.heads) ** -0.5
    projections = (attention.q_proj, attention.k_proj, attention.sentence_q_proj)
    q, k, q_s = (proj(x).unflatten(-1, (attention.heads, -1)) for proj in projections)
    nodes = construct(attention.sentence_encoder(x, layout.tokens), trees, attention.merge)
    keys = attention.sentence_k_proj(nodes).unflatten(-1, (attention.heads, -1))
    sums = path_sums(keys, trees)
    for document, pairs in words.items():
        item, leaf = torch.tensor(pairs).T
        begin, end = layout.document_tokens.offsets[document : document + 2]
        place = layout.token_sentence[begin:end] - layout.sentences.offsets[document]
        level, cumulative = (
            [
                scale * torch.einsum("whd,nhd->whn", q_s[item], of_height)
                for of_height in _heights(of_all, trees, document)
            ]
            for of_all in (keys, sums)
        )
        relevance = cumulative[0]
        scores = scale * torch.einsum("whd,nhd->whn", q[item], k[begin:end]) + relevance[..., place]
        attended = torch.zeros_like(relevance).index_add(-1, place, scores.softmax(-1))
        better = (relevance > _at(relevance, leaf).unsqueeze(-1)).sum(-1)
        cuts = {"walk by level": cut_height(level, t, leaf), "walk by cumulative": cut_height(cumulative, t, leaf)}
        own = cuts["walk by cumulative" if attention.by_cumulative else "walk by level"]
        yield {
            "attention": _at(attended, leaf),
            "best first": (better < t).float(),
            **{name: (cut < 0).float() for name, cut in cuts.items()},
            "any head": (own < 0).any(-1, keepdim=True).expand_as(own).float(),
            "cut": cuts["walk by level"],
            "spread": torch.stack([of_height.std(-1) for of_height in level[:-1]], dim=1),
        }


def _heights(values: Tensor, trees: SentenceTrees, document: int) -> List[Tensor]:
    """Returns the values of a document's nodes, height by height, leaves first and the root last."""
    root = trees.counts[:, document].tolist().index(1)
    spans = zip(trees.first[: root + 1, document], trees.counts[: root + 1, document])
    return [values[first : first + count] for first, count in spans]


def diagnose(checkpoint: Path, data: Path, cases: List[Case], t: int, documents: int) -> Tuple[int, Dict[str, dict]]:
    """Returns how many documents were read, and by kind the figures of the head that attends most to what decides.

    Args:
        checkpoint: of a model with the tree.
        data: what it reads.
        cases: words to look at in the test split.
        t: sentences kept.
        documents: at least so many of the split are read, whole batches.
    """
    ensemble = load_ensemble(checkpoint, data=data)
    model, task = ensemble.model, ensemble.task
    mechanisms = [module for module in model.modules() if isinstance(module, TreeAttention)]
    given: Dict[TreeAttention, Tuple[Tensor, DocumentLayout]] = {}
    for mechanism in mechanisms:
        mechanism.register_forward_pre_hook(lambda module, arguments: given.update({module: arguments}))
    task.load_dataset("test")
    by_sentence, seen = defaultdict(list), 0
    for case in cases:
        by_sentence[case.id].append(case)
    figures: Dict[Tuple[str, int], Figures] = defaultdict(lambda: defaultdict(list))
    for batch in task.get_batch_iterator(task.dataset("test"), max_tokens=4000).next_epoch_itr(shuffle=False):
        with torch.no_grad():
            model.encoder(**{name: x for name, x in batch["net_input"].items() if name != "prev_output_tokens"})
        layout = given[mechanisms[0]][1]
        for kind in sorted({case.kind for case in cases}):
            words = _words(layout, batch["id"].tolist(), by_sentence, kind)
            for layer, mechanism in enumerate(mechanisms):
                for of_document in measure(mechanism, *given[mechanism], words, t):
                    for name, values in of_document.items():
                        figures[kind, layer][name].append(values)
        seen += layout.sentences.rows
        if seen >= documents:
            break
    kinds = sorted({kind for kind, _ in figures})
    return seen, {kind: _summary([figures[kind, layer] for layer in range(len(mechanisms))]) for kind in kinds}


def _words(
    layout: DocumentLayout, ids: List[int], cases: Dict[int, List[Case]], kind: str
) -> Dict[int, List[Tuple[int, int]]]:
    """Returns for every document its words of a kind, as :func:`measure` wants them.

    The corpus translates word by word: a target word's place is that of its source word.
    """
    document = layout.decoded_document
    found: Dict[int, List[Tuple[int, int]]] = defaultdict(list)
    for row, sentence in enumerate(ids):
        place = row - layout.sentences.offsets[document[row]]
        for case in cases[sentence]:
            if case.kind == kind:
                found[document[row]].append((layout.tokens.offsets[row] + case.position, place - case.distance))
    return found


def _summary(layers: List[Figures]) -> dict:
    attention = torch.stack([torch.cat(figures["attention"]).mean(0) for figures in layers])  # [layers, H]
    layer, head = divmod(int(attention.argmax()), attention.size(1))
    figures = layers[layer]
    means = {name: torch.cat(figures[name])[:, head].mean().item() for name in (*SHARES, "any head")}
    cut = torch.cat(figures["cut"])[:, head]
    spread = torch.cat(figures["spread"])[..., head]  # [W, heights]: the documents' trees are equally high
    return {
        "layer": layer,
        "head": head,
        "words": len(cut),
        **means,
        "spread": spread.mean(0).tolist(),
        "cut": [(cut == height).float().mean().item() for height in range(spread.size(1))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainings", nargs="+", help="folders in --work; FOLDER=NAME gives the table's name for it")
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "long_range", help="folder of long_range.py")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of long_range.py's report")
    parser.add_argument("--kept", type=int, default=4, metavar="T")
    parser.add_argument("--documents", type=int, default=30)
    args = parser.parse_args()
    stored = Store(args.results / "long_range.json")
    cases = read_cases(args.work / "corpus" / "long" / "test.phenomena.tsv")
    stored.called(command())
    stored.facts["diagnosis"] = {}
    for training in args.trainings:
        folder, _, name = training.partition("=")
        documents, kinds = diagnose(
            args.work / folder / LAST, args.work / "data" / "long", cases, args.kept, args.documents
        )
        stored.facts["diagnosis"][name or folder] = {"t": args.kept, "documents": documents, "kinds": kinds}
    stored.save()
    write(stored, args.results)


if __name__ == "__main__":
    main()
