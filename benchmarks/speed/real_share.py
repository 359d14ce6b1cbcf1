"""Counts, by hooks in a running model, for how many positions it computes, and how many of them hold real tokens."""

from collections import defaultdict
from contextlib import ExitStack
from typing import Dict
from unittest.mock import patch

import torch
from tqdm import tqdm

from benchmarks.lib.systems import System, first_linear
from docnmt_fairseq.batch.attention_plans import TargetsToSource, WithinSentences, WithinTargets
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional import kernels
from docnmt_fairseq.context.conditional.kernels.pytorch import grouped_attention, masked_documents
from docnmt_fairseq.context.conditional.kernels.pytorch.kernel import PyTorchKernel
from docnmt_fairseq.context.conditional.selection import Selection, SelectionPlan

PARTS = {
    "encoder fc1": "encoder feed-forward",
    "decoder fc1": "decoder feed-forward",
    "output": "output projection and loss",
    "encoder self": "encoder self-attention",
    "decoder self": "decoder self-attention",
    "cross": "decoder-encoder attention",
    "context": "context attention",
}
PLANS = {WithinSentences: "encoder self", WithinTargets: "decoder self", TargetsToSource: "cross"}


class Counter:
    """Positions, or pairs of a query and a key, by part: computed and real."""

    def __init__(self):
        self.computed: Dict[str, int] = defaultdict(int)
        self.real: Dict[str, int] = defaultdict(int)

    def add(self, part: str, computed: int, real: int = 0) -> None:
        """Adds positions (or pairs) of a part."""
        self.computed[part] += int(computed)
        self.real[part] += int(real)

    def shares(self) -> Dict[str, float]:
        """Returns real ÷ computed of every part that was computed at all."""
        return {part: self.real[part] / computed for part, computed in self.computed.items() if computed}


def _hook_positions(system: System, counter: Counter) -> None:
    model = system.model
    output = model.decoder.output_projection
    modules = {f"{side} fc1": first_linear(getattr(model, side).layers[0]) for side in ("encoder", "decoder")}
    modules["output"] = output
    for part, module in modules.items():
        module.register_forward_pre_hook(
            lambda _, inputs, part=part: counter.add(part, inputs[0].numel() // inputs[0].size(-1))
        )


def _hook_stock_attention(system: System, counter: Counter) -> None:
    encoder, decoder = system.model.encoder.layers[0], system.model.decoder.layers[0]
    modules = {"encoder self": encoder.self_attn, "decoder self": decoder.self_attn, "cross": decoder.encoder_attn}

    def hook(part: str, _inputs: tuple, given: dict) -> None:
        query, key = given["query"], given["key"]  # [queries, rows, d], [keys, rows, d]
        counter.add(part, query.size(1) * query.size(0) * key.size(0))

    for part, module in modules.items():
        options = {"with_kwargs": True}
        module.register_forward_pre_hook(lambda _, *inputs, part=part: hook(part, *inputs), **options)


def _count_real(system: System, sample: dict, counter: Counter) -> None:
    """Adds the real tokens of a batch, and the pairs of them that may attend to each other."""
    pad, inputs = system.task.target_dictionary.pad(), sample["net_input"]
    layout = inputs.get("layout")
    source = layout.tokens.lengths if layout else inputs["src_tokens"].ne(pad).sum(1).numpy()
    decoded = layout.decoded_tokens.lengths if layout else source
    target = sample["target"].ne(pad).sum(1).numpy()
    counter.add("encoder fc1", 0, source.sum())
    for part in ("decoder fc1", "output"):
        counter.add(part, 0, target.sum())
    pairs = {"encoder self": (source, source), "decoder self": (target, target), "cross": (target, decoded)}
    for part, (queries, keys) in pairs.items():
        counter.add(part, 0, (queries * keys).sum())


def _count_plans(layout: DocumentLayout, counter: Counter) -> None:
    """Adds the pairs that the attention plans of a batch, made in its forward pass, compute."""
    for key, plan in layout._plans.items():
        if type(key) in PLANS:
            counter.add(PLANS[type(key)], sum(block.query.numel() * block.key.size(1) for block in plan.blocks))
        elif isinstance(plan, SelectionPlan) and plan.dense is not None:  # of short documents all is kept
            words = layout.document_tokens.lengths
            for block in plan.dense.blocks:
                counter.add("context", block.query.numel() * block.key.size(1), (words[block.rows] ** 2).sum())


def _counting_selected(counter: Counter) -> ExitStack:
    """Returns a context that adds the pairs of words and words of kept sentences (of all layers and heads).

    They are those of the kernel ``torch``, which pads; the compiled one computes real pairs only.
    """
    attend, pad, block = PyTorchKernel.attend, masked_documents.ragged_attention, grouped_attention.block_pairs

    def real(kernel: object, q: object, k: object, v: object, selection: Selection, layout: object, p: float) -> object:
        kept = selection.sentence.flatten().numpy()
        counter.add("context", 0, layout.tokens.lengths[kept[kept >= 0]].sum())
        return attend(kernel, q, k, v, selection, layout, p)

    def padded(q: torch.Tensor, k: object, v: object, plan: object, *more: object, **options: object) -> object:
        pairs = sum(block.query.numel() * block.key.size(1) for block in plan.blocks)
        counter.add("context", pairs * q.size(1))
        return pad(q, k, v, plan, *more, **options)

    def blocked(sentence: object, buckets: object) -> object:
        pairs = block(sentence, buckets)
        counter.add("context", sum(blocks.query.numel() * blocks.bucket.width for blocks in pairs.by_bucket))
        return pairs

    stack = ExitStack()
    stack.enter_context(patch.object(kernels, "PREFERENCE", ("torch",)))
    stack.enter_context(patch.object(PyTorchKernel, "attend", real))
    stack.enter_context(patch.object(masked_documents, "ragged_attention", padded))
    stack.enter_context(patch.object(grouped_attention, "block_pairs", blocked))
    return stack


def real_shares(name: str, args: object) -> Dict[str, float]:
    """Returns the shares of real among computed positions over an epoch (or ``args.share_batches`` batches).

    The model is as thin as can be: widths change no number of positions.
    """
    system, counter = System(name, args, tiny=True), Counter()
    _hook_positions(system, counter)
    if name == "stock":
        _hook_stock_attention(system, counter)
    batches = min(args.share_batches or len(system.batches), len(system.batches))
    with torch.no_grad(), _counting_selected(counter):
        for sample in tqdm(system.samples(0, batches), total=batches, desc=f"{name}: positions", leave=False):
            system.criterion(system.model, sample)
            _count_real(system, sample, counter)
            if "layout" in sample["net_input"]:
                _count_plans(sample["net_input"]["layout"], counter)
    return counter.shares()
