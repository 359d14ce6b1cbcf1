"""What it costs to teach the selection: training steps with all sentences, with the loss beside it, and with t.

    python -m benchmarks.speed.selection_loss DATA_BIN [--max-tokens 4096] [--width 256] [--rounds 7] …

In one process, rounds of training steps of the three by turns, on the same batches; ratios are within a round.
Options that are not listed by --help go to all of them, e.g. --share-all-embeddings.
Writes benchmarks/results/selection_loss.md and .json.
"""

import argparse
import statistics

from tqdm import tqdm

from benchmarks.lib.machine import begin, command, machine, publish, table, threads
from benchmarks.lib.systems import System
from benchmarks.speed.training_speed import add_round_options, one_round

DENSE = ["--context-top-t", "4", "--context-top-t-anneal-start", "1000000"]
VARIANTS = {
    "all sentences": [*DENSE, "--selection-loss", "0"],
    "all sentences, the selection taught": [*DENSE, "--selection-loss", "1"],
    "t = 4": ["--context-top-t", "4", "--selection-loss", "0"],
    "t = 4, the selection taught": [
        "--context-top-t",
        "4",
        "--selection-loss",
        "1",
        "--selection-loss-phase",
        "always",
    ],
}
UNTIL = 0.75  # of a training's updates, when narrowing begins


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_round_options(parser)
    args, args.more = parser.parse_known_args()
    return args


def measure(args: argparse.Namespace) -> dict:
    """Returns for every variant the milliseconds of a step and the ratio to all sentences without the loss."""
    systems = {
        name: System("conditional", argparse.Namespace(**{**vars(args), "more": [*args.more, *own]}))
        for name, own in VARIANTS.items()
    }
    for system in systems.values():
        one_round(system, 0, args.warmup)
    rounds = {name: [] for name in systems}
    for _ in tqdm(range(args.rounds), desc="rounds"):
        for name, system in systems.items():
            rounds[name].append(one_round(system, 0, args.steps)["seconds"])
    result = {}
    for name, own in rounds.items():
        ratios = [one / first for one, first in zip(own, rounds["all sentences"])]
        milliseconds = 1000 * statistics.median(own) / args.steps
        spread = [min(ratios), max(ratios)]
        result[name] = {"ms_a_step": milliseconds, "ratio": statistics.median(ratios), "ratio_range": spread}
    return result


def report(args: argparse.Namespace, result: dict) -> str:
    rows = []
    for name, one in result.items():
        low, high = one["ratio_range"]
        rows.append([name, f"{one['ms_a_step']:,.1f}", f"{one['ratio']:.2f} ({low:.2f} to {high:.2f})"])
    more = result["all sentences, the selection taught"]["ratio"] - 1
    sizes = f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads"
    return "\n\n".join(
        [
            "# What it costs to teach the selection",
            f"`{command()}`  \n{machine()}; {threads()}",
            f"{sizes}; the upper half of the encoder's layers has conditional attention; float32, {args.max_tokens} "
            f"tokens a batch. {args.rounds} rounds by turns of {args.steps} steps (forward, backward, Adam); medians.",
            table(["what is kept", "ms a step", "÷ all sentences (range)"], rows),
            f"Of a training that narrows after {100 * UNTIL:.0f} % of its updates, it is {100 * more * UNTIL:.1f} %.",
        ]
    )


def main() -> None:
    args = options()
    begin(args.threads)
    result = measure(args)
    publish("selection_loss", report(args, result), variants=result)


if __name__ == "__main__":
    main()
