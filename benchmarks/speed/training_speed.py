"""Training speed of systems, ratios within rounds of training steps by turns.

    python -m benchmarks.speed.training_speed DATA_BIN [--compare mechanisms] [--rounds 7] [--width 256] ...

``--compare``: ``systems`` (this package and stock fairseq), ``mechanisms`` (all context mechanisms and baselines),
``finetuning`` (all parameters, context only, LoRA; with peak memory), ``precision`` (float32 and bfloat16) or
``selection`` (cost of the selection loss). Options that --help does not list are passed to all models, for example
--share-all-embeddings.
"""

import argparse
import shlex
import statistics
import sys
from dataclasses import dataclass

from benchmarks.lib.measuring import by_turns, clock, peak_of, print_peak, ratio, run_benchmark, shown_ratio
from benchmarks.lib.reporting import table
from benchmarks.lib.systems import STOCK, System, add_model_options, shown_sizes, system_options

TITLE = "Training speed"
FREEZE, LORA = ["--freeze-sentence-model"], ["--lora-rank", "8"]
ALL_SENTENCES = ["--context-top-t", "4", "--context-top-t-anneal-start", "1000000"]


@dataclass(frozen=True)
class Comparison:
    """Systems that are trained by turns.

    Attributes:
        title: title of the report.
        result: file name of the report.
        systems: name of the system and additional options, by label; the first is the baseline.
    """

    title: str
    result: str
    systems: dict[str, tuple[str, list[str]]]


MECHANISMS = [
    STOCK, "sentence", "concatenation", "concatenation-2to2", "concatenation-4to1", "sentence-attention", "conditional",
    "tree", "memory", "memory-3", "context-aware", "han", "han-target", "han-both", "ca-att", "previous-flat",
    "previous-hierarchical", "ca-nn", "ca-res",
]  # fmt: skip
COMPARISONS = {
    "systems": Comparison(
        "Training speed compared with stock fairseq",
        "training_speed",
        {name: (name, []) for name in (STOCK, "sentence", "conditional")},
    ),
    "mechanisms": Comparison(
        "Training speed of context mechanisms", "mechanism_speed", {name: (name, []) for name in MECHANISMS}
    ),
    "finetuning": Comparison(
        "Finetuning: all parameters, context only, LoRA",
        "finetuning",
        {
            "all parameters": ("conditional", []),
            "context only": ("conditional", FREEZE),
            "context, LoRA r = 8 on q, v": ("conditional", [*FREEZE, *LORA]),
            "context, LoRA r = 8 on all six": ("conditional", [*FREEZE, *LORA, "--lora-on", "q,k,v,out,fc1,fc2"]),
            "LoRA r = 8 on q, v, no context": ("sentence", [*FREEZE, *LORA]),
        },
    ),
    "precision": Comparison(
        "Training in bfloat16",
        "half_precision",
        {
            f"{name}, {precision}": (name, options)
            for name in ("sentence", "conditional")
            for precision, options in (("float32", []), ("bfloat16", ["--bf16"]))
        },
    ),
    "selection": Comparison(
        "Cost of the selection loss",
        "selection_loss",
        {
            f"{kept}{loss}": ("conditional", [*options, *more])
            for kept, options in (("all sentences", ALL_SENTENCES), ("t = 4", ["--context-top-t", "4"]))
            for loss, more in (
                ("", ["--selection-loss", "0"]),
                (", selection loss", ["--selection-loss", "1", "--selection-loss-phase", "always"]),
            )
        },
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options of data, sizes and rounds."""
    add_model_options(parser)
    parser.add_argument("--compare", choices=COMPARISONS, default="systems")
    parser.add_argument("--only", nargs="+", metavar="LABEL", help="compare only these with the baseline")
    parser.add_argument("--rounds", type=int, default=7, help="number of rounds (default: 7)")
    parser.add_argument("--steps", type=int, default=8, help="training steps of each system in a round (default: 8)")
    parser.add_argument("--warmup", type=int, default=2, help="training steps before the first round (default: 2)")


def system_of(label: str, args: argparse.Namespace) -> System:
    """Returns a system of the comparison."""
    name, options = COMPARISONS[args.compare].systems[label]
    return System(name, argparse.Namespace(**{**vars(args), "more": [*args.more, *options]}))


def train(system: System, steps: int) -> dict:
    """Returns target tokens, seconds of training and of collating; all rounds train on the same batches."""
    tokens, seconds, collating = 0, 0.0, 0.0
    samples = system.samples(0, steps)
    for _ in range(steps):
        start = clock()
        sample = next(samples)
        made = clock()
        system.step(sample)
        seconds += clock() - made
        collating += made - start
        tokens += system.target_tokens(sample)
    return {"tokens": tokens, "seconds": seconds, "collating": collating, "speed": tokens / seconds}


def child(args: argparse.Namespace) -> None:
    """Prints the peak memory of two steps of a system."""
    system = system_of(args.child[0], args)
    print_peak(lambda: train(system, 2))


def measure(args: argparse.Namespace) -> dict:
    """Returns speeds, ratios to the baseline, sizes and, for finetuning, peak memory."""
    comparison = COMPARISONS[args.compare]
    args.title, args.result_name = comparison.title, comparison.result
    labels = [label for place, label in enumerate(comparison.systems) if not place or label in (args.only or [label])]
    systems = {label: system_of(label, args) for label in labels}
    for system in systems.values():
        train(system, args.warmup)
    calls = {label: lambda system=system: train(system, args.steps) for label, system in systems.items()}
    rounds = by_turns(calls, args.rounds, warmup=0)
    speeds = {label: [one["speed"] for one in own] for label, own in rounds.items()}
    found = {}
    for label, own in rounds.items():
        parameters = set(systems[label].model.parameters())
        median, *span = ratio(speeds, label, labels[0])
        found[label] = {
            "speed": statistics.median(speeds[label]),
            "ratio": median,
            "ratio_range": span,
            "tokens_per_step": own[0]["tokens"] / args.steps,
            "ms_per_step": 1000 * statistics.median(one["seconds"] for one in own) / args.steps,
            "ms_collating": 1000 * statistics.median(one["collating"] for one in own) / args.steps,
            "parameters": sum(one.numel() for one in parameters),
            "trained": sum(one.numel() for one in parameters if one.requires_grad),
            "optimizer_bytes": systems[label].optimizer_bytes(),
            "peak_bytes": peak_of(__name__, *child_words(label, args)) if args.compare == "finetuning" else None,
        }
    return {"systems": found}


def child_words(label: str, args: argparse.Namespace) -> list[object]:
    """Returns the arguments of the process that measures peak memory."""
    names = ("max_tokens", "layers", "width", "ffn", "heads", "dropout", "seed", "threads", "compare")
    given = [(name, getattr(args, name)) for name in names if getattr(args, name) is not None]
    words = [word for name, value in given for word in (f"--{name.replace('_', '-')}", value)]
    return [args.data_bin, *words, *args.more, "--child", label]


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    systems = figures["systems"]
    columns = ["system", "speed ÷ first (range)", "target tokens/s", "tokens per step", "ms per step", "ms collating"]
    columns += ["parameters", "trained", "optimizer state, MiB"]
    peaks = any(one["peak_bytes"] for one in systems.values())
    rows = []
    for label, one in systems.items():
        shown = [label, shown_ratio([one["ratio"], *one["ratio_range"]]), f"{one['speed']:,.0f}"]
        shown += [f"{one['tokens_per_step']:,.0f}", f"{one['ms_per_step']:,.1f}", f"{one['ms_collating']:,.1f}"]
        shown += [f"{one['parameters']:,}", f"{one['trained']:,}", f"{one['optimizer_bytes'] / 2**20:,.1f}"]
        rows.append([*shown, f"{one['peak_bytes'] / 2**20:,.0f}"] if peaks else shown)
    text = (
        f"{shown_sizes(args)}; --max-tokens {args.max_tokens}, for concatenation models multiplied by the number of "
        f"sentences of an input. {args.rounds} rounds by turns of {args.steps} steps (forward, backward, Adam) on the "
        "same random batches; medians. Target tokens do not include context that a concatenation model writes again. "
        "Collating is timed separately, since it runs in data loader processes during training."
    )
    if peaks:
        text += " Peak memory: two steps in a new process, without the model's weights."
    options = COMPARISONS[args.compare].systems
    listed = [
        f"- {label}: `{shlex.join([*system_options(options[label][0]), *options[label][1]])}`" for label in systems
    ]
    header = [*columns, "peak, MiB"] if peaks else columns
    return [text, table(header, rows), "\n".join(listed)]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.training_speed"))
