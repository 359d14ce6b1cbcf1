"""How much of each token's exact top t a trained model's trees find, in either order of their leaves."""

from typing import Dict

import torch

from benchmarks.experiments.long_range_runs import Runner
from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.context.conditional.key_order import mean_keys
from docnmt_fairseq.context.conditional.tree import TreesOfBatch
from docnmt_fairseq.context.conditional.tree_attention import TreeAttention
from docnmt_fairseq.recipes.training import LAST


def shares_found(runner: Runner, name: str) -> Dict[str, float]:
    """Returns, over 20 long documents, which share of each token's exact top t a model's tree finds.

    By how its leaves stand: in the order of ``keys``, or in that of the ``text``, nodes being means in both.
    """
    ensemble = load_ensemble(runner.folder / name / LAST, data=runner.data("long"))
    (model,), task = ensemble.models, ensemble.task
    found: Dict[str, float] = dict.fromkeys(("keys", "text"), 0.0)
    wanted = 0

    def watch(mechanism: TreeAttention) -> None:
        original = mechanism.sentence_keys

        def sentence_keys(encodings, q_s, selection, layout):
            keys, choose = original(encodings, q_s, selection, layout)

            def both(kernel):
                nonlocal wanted
                exact = kernel.choose(q_s, keys, layout, selection)
                wanted += exact.numel()
                text = torch.arange(len(keys))[:, None].expand(-1, keys.size(1))
                nodes = mean_keys(keys, text, layout.plan(TreesOfBatch()))
                beam = kernel.choose_in_tree(q_s, nodes, layout, mechanism.walk(selection))
                chosen = choose(kernel)
                for order, rows in (("keys", chosen), ("text", beam)):
                    found[order] += float((exact[..., None] == rows[:, :, None]).any(-1).sum())
                return chosen

            return keys, both

        mechanism.sentence_keys = sentence_keys

    for part in model.modules():
        if isinstance(part, TreeAttention):
            watch(part)
    task.load_dataset("valid")
    batches = task.get_batch_iterator(task.dataset("valid"), max_tokens=650, num_workers=0)
    with torch.no_grad():
        for sample in batches.next_epoch_itr(shuffle=False):
            net_input = sample["net_input"]
            model.encoder(net_input["src_tokens"], net_input["src_lengths"], layout=net_input["layout"])
    return {order: number / wanted for order, number in found.items()}
