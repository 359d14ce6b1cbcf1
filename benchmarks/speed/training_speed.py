"""Training speed beside stock fairseq, and how much of the computation is spent on real tokens.

    python -m benchmarks.speed.training_speed DATA_BIN [--rounds 7] [--steps 8] [--max-tokens 4096] [--width 256] ...

In one process, rounds of training steps of three systems by turns; ratios are within a round, of which the median is
reported. Options that are not listed by --help go to all three models, e.g. --share-all-embeddings.
Writes benchmarks/results/training_speed.md and .json.
"""

import argparse
import statistics
from typing import Iterable

import torch
from tqdm import tqdm

from benchmarks.lib.machine import begin, clock, command, machine, publish, table, threads
from benchmarks.lib.systems import DESCRIPTIONS, System, add_model_options
from benchmarks.speed.real_share import PARTS, real_shares

SENTENCE_TARGET, CONDITIONAL_TARGET, SHARE_TARGET = 0.9, 1.4, 0.85
SHARE_PARTS = {
    "feed-forward and loss": ("encoder fc1", "decoder fc1", "output"),
    "attention cores": ("encoder self", "decoder self", "cross"),
}


def add_round_options(parser: argparse.ArgumentParser) -> None:
    """Adds data, sizes and how long and on what it is measured."""
    add_model_options(parser)
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count (default: 7)")
    parser.add_argument("--steps", type=int, default=8, help="steps of a system in a round (default: 8)")
    parser.add_argument("--warmup", type=int, default=2, help="steps of each system before (default: 2)")
    parser.add_argument("--threads", type=int, help="of PyTorch (default: its own choice)")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_round_options(parser)
    parser.add_argument("--share-batches", type=int, default=0, help="batches to count positions in; 0: an epoch")
    args, args.more = parser.parse_known_args()
    return args


def one_round(system: System, first: int, steps: int) -> dict:
    """Returns target tokens, seconds of training and seconds of collating for the same batches in every round."""
    tokens, seconds, collating = 0, 0.0, 0.0
    samples = system.samples(first, steps)
    for _ in range(steps):
        start = clock()
        sample = next(samples)
        made = clock()
        system.step(sample)
        seconds += clock() - made
        collating += made - start
        tokens += system.target_tokens(sample)
    return {"tokens": tokens, "seconds": seconds, "collating": collating, "speed": tokens / seconds}


def measure(args: argparse.Namespace, names: Iterable[str] = tuple(DESCRIPTIONS)) -> dict:
    """Returns the rounds of every system and facts about it; ``stock`` must be among them."""
    systems = {name: System(name, args) for name in names}
    for system in systems.values():
        one_round(system, 0, args.warmup)
    rounds = {name: [] for name in systems}
    for _ in tqdm(range(args.rounds), desc="rounds"):
        for name, system in systems.items():
            rounds[name].append(one_round(system, 0, args.steps))
    return {name: summary(systems[name], rounds, name, args.steps) for name in systems}


def summary(system: System, rounds: dict, name: str, steps: int) -> dict:
    """Returns the medians of one system, its ratio to stock among them."""
    own = rounds[name]
    ratios = [one["speed"] / stock["speed"] for one, stock in zip(own, rounds["stock"])]
    return {
        "speed": statistics.median(one["speed"] for one in own),
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "tokens_a_step": own[0]["tokens"] / steps,
        "ms_a_step": 1000 * statistics.median(one["seconds"] for one in own) / steps,
        "ms_collating": 1000 * statistics.median(one["collating"] for one in own) / steps,
        "batches": len(system.batches),
        "parameters": sum(parameter.numel() for parameter in set(system.model.parameters())),
        "rounds": own,
    }


def speed_table(result: dict) -> str:
    header = [
        "system",
        "target tokens/s",
        "÷ stock (range)",
        "tokens a step",
        "ms a step",
        "ms collating",
        "parameters",
    ]
    rows = []
    for name, one in result.items():
        low, high = one["ratio_range"]
        ratio = f"{one['ratio']:.3f} ({low:.3f} to {high:.3f})"
        times = [f"{one['tokens_a_step']:,.0f}", f"{one['ms_a_step']:,.1f}", f"{one['ms_collating']:,.1f}"]
        rows.append([name, f"{one['speed']:,.0f}", ratio, *times, f"{one['parameters']:,}"])
    return table(header, rows)


def share_table(result: dict) -> str:
    rows = []
    for part, label in PARTS.items():
        shares = [one["real_share"].get(part) for one in result.values()]
        rows.append([label, *("" if share is None else f"{share:.3f}" for share in shares)])
    return table(["real ÷ computed", *result], rows)


def targets(result: dict) -> list:
    """Returns one line a target: what, the number, met or missed."""
    lines = []

    def line(text: str, value: float, met: bool) -> None:
        lines.append(f"- {text}: {value:.3f}, {'met' if met else 'missed'}")

    ratio = result["sentence"]["ratio"]
    line(f"sentence ≥ {SENTENCE_TARGET} × stock", ratio, ratio >= SENTENCE_TARGET)
    rounds = zip(result["conditional"]["rounds"], result["sentence"]["rounds"])
    ratio = statistics.median(one["seconds"] / other["seconds"] for one, other in rounds)
    line(f"a conditional step ≤ {CONDITIONAL_TARGET} × a sentence-level one", ratio, ratio <= CONDITIONAL_TARGET)
    for name in ("sentence", "conditional"):
        for what, parts in SHARE_PARTS.items():
            share = min(result[name]["real_share"][part] for part in parts)
            line(f"{name}, real in {what} ≥ {SHARE_TARGET}", share, share >= SHARE_TARGET)
    return lines


def report(args: argparse.Namespace, result: dict) -> str:
    where = threads() if args.device == "cpu" else torch.cuda.get_device_name()
    sizes = f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads"
    counted = f"{args.share_batches} random batches" if args.share_batches else "an epoch"
    return "\n\n".join(
        [
            "# Training speed beside stock fairseq",
            f"`{command()}`  \n{machine()}; {where}",
            "\n".join(f"- {text}" for text in DESCRIPTIONS.values()),
            f"{sizes}; float32, --max-tokens {args.max_tokens}. {args.rounds} rounds by turns of {args.steps} steps "
            "(forward, backward, Adam) on the same random batches of the train set; medians. Collating is timed apart: "
            "in training it happens beside the steps. The stock task takes the marks of documents and paragraphs for "
            "sentences; their tokens count in its favour.",
            speed_table(result),
            f"Positions, and pairs of query and key inside attention, over {counted}:",
            share_table(result),
            "\n".join(["Targets:", *targets(result)]),
        ]
    )


def main() -> None:
    args = options()
    begin(args.threads)
    result = measure(args)
    for name, one in result.items():
        one["real_share"] = real_shares(name, args)
    publish("training_speed", report(args, result), systems=result)


if __name__ == "__main__":
    main()
