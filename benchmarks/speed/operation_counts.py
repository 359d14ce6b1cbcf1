"""How many operations, copies and reads of the device a training step is, beside stock fairseq's; counted on a CPU.

    python -m benchmarks.speed.operation_counts [--before FILE] [--width 16] ...

One batch of random sentences in documents; forward, loss and backward on the device of
benchmarks/lib/counted_device.py, in a type that a GPU has fused kernels for. FILE is the .json of an earlier run, to be
shown beside this one. Writes benchmarks/results/operation_counts.md and .json.
"""

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List
from unittest.mock import patch

import numpy as np
import torch
from fairseq import utils

from benchmarks.lib.counted_device import HAVE, Count, counted, counted_device
from benchmarks.lib.machine import begin, command, machine, publish, table
from benchmarks.lib.preprocess import fairseq_preprocess
from benchmarks.lib.systems import System
from docnmt_fairseq.layers import attention
from docnmt_fairseq.tasks.document_translation import DocumentTranslationTask

CONTEXT = ("conditional", "tree", "sentence-encodings", "memory", "han", "context-aware", "ca-att")
ARCHITECTURES = ("stock", "sentence", *CONTEXT)
VOCABULARY = 500


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="operation_counts.json of an earlier run")
    parser.add_argument("--systems", default=",".join(ARCHITECTURES), help="of these, with commas between")
    parser.add_argument("--type", default="bfloat16", help="of weights and states (default: bfloat16)")
    parser.add_argument("--sentences", type=int, default=160)
    parser.add_argument("--documents", type=int, default=8)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--ffn", type=int, default=32)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", action="store_true", help="print where copies and reads are")
    args, args.more = parser.parse_known_args()
    args.device, args.max_tokens = "cpu", 10**6
    return args


def make_data_bin(folder: Path, args: argparse.Namespace) -> Path:
    """Returns a data-bin whose train split is one batch: lengths as of real text, about 25 tokens a sentence."""
    random = np.random.default_rng(args.seed)
    first = set(np.linspace(0, args.sentences, args.documents, endpoint=False).astype(int)) - {0}
    for side in ("src", "tgt"):
        lines = []
        for number in range(args.sentences):
            lines += [""] if number in first else []
            length = int(np.clip(random.lognormal(3.1, 0.5), 2, 90))
            lines.append(" ".join(f"w{word}" for word in random.integers(VOCABULARY, size=length)))
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["-s", "src", "-t", "tgt", "--trainpref", str(folder / "train"), "--destdir", str(folder / "bin")]
    fairseq_preprocess([*words, "--joined-dictionary"])
    return folder / "bin"


def counts_of(name: str, args: argparse.Namespace) -> Dict[str, Any]:
    """Returns what a step of a system is; of stock fairseq the second one: the first fills its tables of positions."""
    system = System(name, args)
    device = torch.device("counted", 0)
    system.model.to(getattr(torch, args.type)).to(device)
    if isinstance(system.task, DocumentTranslationTask):  # as fairseq does when training begins
        system.task.request_plans(system.model)
    for _ in range(2 if name == "stock" else 1):
        sample = system.dataset.collater([system.dataset[i] for i in range(len(system.dataset))])
        sample = utils.apply_to_sample(lambda x: x.to(device), sample)
        system.model.zero_grad()
        with counted() as forward:
            loss, _, _ = system.criterion(system.model, system.prepared(sample))
        with counted() as backward:
            loss.backward()
    if args.lines:
        for part in (forward, backward):
            for kind, found in (("copy", part.copies), ("read", part.reads)):
                for (operation, line), times in Counter(found).most_common():
                    print(f"{name}: {times} x {kind} {operation} at {line}")
            print(name, part.kinds.most_common(40))
    return summary(forward, backward, sample)


def summary(forward: Count, backward: Count, sample: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the numbers of a step."""
    kinds = forward.kinds + backward.kinds
    attention = sum(times for kind, times in forward.kinds.items() if "attention" in kind)
    return {
        "target_tokens": sample["ntokens"],
        "forward": forward.operations, "backward": backward.operations, "attention": attention,
        "copies": len(forward.copies) + len(backward.copies), "reads": len(forward.reads) + len(backward.reads),
        "kinds": dict(kinds.most_common()),
    }  # fmt: skip


def report(args: argparse.Namespace, found: Dict[str, Any], before: Dict[str, Any]) -> str:
    """Returns the table and what it is of."""
    header = ["", "forward", "backward", "both ÷ stock", "attention calls", "copies", "reads"]
    stock = found.get("stock", {"forward": 0, "backward": 0})
    whole = stock["forward"] + stock["backward"]
    rows: List[List[str]] = []
    for name in found:
        row = [name]
        for key in ("forward", "backward", "ratio", "attention", "copies", "reads"):
            both = [of[name] for of in (before, found) if name in of]
            if key == "ratio":
                cells = [f"{(of['forward'] + of['backward']) / whole:.2f}" if whole else "" for of in both]
            else:
                cells = [f"{of[key]:,}" for of in both]
            row.append(" → ".join(cells))
        rows.append(row)
    any_of = next(iter(found.values()))
    sizes = f"{args.layers} + {args.layers} layers, width {args.width}, {args.heads} heads, dropout {args.dropout}"
    batch = f"{args.sentences} sentences in {args.documents} documents, {any_of['target_tokens']:,} target tokens"
    arrow = " Left of the arrow: the earlier run, as a share of stock in this one." if before else ""
    return "\n\n".join(
        [
            "# Operations of a training step",
            f"`{command()}`  \n{machine()}",
            f"{batch}; {sizes}, {args.type}. Operations are what a GPU would be asked to start: neither views nor "
            "empty tensors, and attention to rows padded together, or packed, is one. Copies: tensors of the CPU "
            "copied to the device inside the step, without the sample's own. Reads: where the CPU waits for the "
            f"device. An RNN is counted step by step, which cuDNN computes in one.{arrow}",
            table(header, rows),
        ]
    )


def main() -> None:
    args = options()
    if not HAVE:
        raise SystemExit("this PyTorch knows no devices written in Python: 2.10 is the first that does")
    begin()
    before = json.loads(args.before.read_text(encoding="utf-8"))["systems"] if args.before else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        counted_device(),
        patch.object(attention, "has_flash_kernel", lambda _: True),
    ):
        args.data_bin = str(make_data_bin(Path(folder), args))
        found = {name: counts_of(name, args) for name in args.systems.split(",")}
    publish("operation_counts", report(args, found, before), systems=found)


if __name__ == "__main__":
    main()
