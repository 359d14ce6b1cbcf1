"""What every context mechanism and baseline costs in training, beside stock fairseq.

    python -m benchmarks.speed.mechanism_speed DATA_BIN [--models conditional han …] [--rounds 7] [--width 256] …

As training_speed.py, for any model of the recipes (`docnmt recipe --help`), for `ca-nn` and `ca-res`. All take the same
number of sentences a batch, so what a model reads again (concatenation) shows in its speed.
Options that are not listed by --help go to all models, e.g. --share-all-embeddings.
Writes benchmarks/results/mechanism_speed.md and .json.
"""

import argparse
import shlex

import torch

from benchmarks.lib.machine import begin, command, machine, publish, table, threads
from benchmarks.lib.systems import options_of
from benchmarks.speed.training_speed import add_round_options, measure

MODELS = [
    "sentence", "concatenation", "concatenation-2to2", "concatenation-4to1", "sentence-attention", "conditional",
    "tree", "memory", "memory-3", "context-aware", "han", "han-target", "han-both", "ca-att", "previous-flat",
    "previous-hierarchical", "ca-nn", "ca-res",
]  # fmt: skip


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_round_options(parser)
    parser.add_argument("--models", nargs="+", default=MODELS, help=f"default: {' '.join(MODELS)}")
    args, args.more = parser.parse_known_args()
    return args


def speed_table(result: dict) -> str:
    header = ["model", "÷ stock (range)", "target tokens/s", "ms a step", "parameters", "options"]
    rows = []
    for name, one in sorted(result.items(), key=lambda item: -item[1]["ratio"]):
        low, high = one["ratio_range"]
        speed = [f"{one['ratio']:.2f} ({low:.2f} to {high:.2f})", f"{one['speed']:,.0f}", f"{one['ms_a_step']:,.0f}"]
        rows.append([name, *speed, f"{one['parameters']:,}", f"`{shlex.join(options_of(name)[2:])}`"])
    return table(header, rows)


def report(args: argparse.Namespace, result: dict) -> str:
    where = threads() if args.device == "cpu" else torch.cuda.get_device_name()
    sizes = f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads"
    return "\n\n".join(
        [
            "# What context costs in training",
            f"`{command()}`  \n{machine()}; {where}",
            f"{sizes}; float32, {args.max_tokens} tokens of sentences a batch, those of concatenation models as many "
            f"times larger as they hold sentences. {args.rounds} rounds by turns of {args.steps} steps (forward, "
            "backward, Adam) on the same random batches of the train set; medians. Target tokens are those of the "
            "sentences to translate, not those that a concatenation model writes again before them.",
            speed_table(result),
        ]
    )


def main() -> None:
    args = options()
    begin(args.threads)
    result = measure(args, ["stock", *args.models])
    publish("mechanism_speed", report(args, result), systems=result)


if __name__ == "__main__":
    main()
