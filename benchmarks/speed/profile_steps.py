"""Where the time of a training step and of a search goes, by kind of operation, beside stock fairseq.

    python -m benchmarks.speed.profile_steps DATA_BIN [--steps 3] [--every 40] [--before FILE] [--width 256] ...

torch.profiler over training steps on real documents, and over the translation of every 40th batch of the test set with
the reference as prefix (see generation_speed.py). FILE is the .json of an earlier run to show beside this one.
Options that are not listed by --help go to all models, e.g. --share-all-embeddings.
Writes benchmarks/results/profile.md and .json.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Dict

from benchmarks.lib.kinds import kinds
from benchmarks.lib.machine import begin, clock, command, machine, publish, table, threads
from benchmarks.lib.systems import DESCRIPTIONS, System, add_model_options
from benchmarks.speed.generation_speed import Translator


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser)
    parser.add_argument("--steps", type=int, default=3, help="training steps of each system (default: 3)")
    parser.add_argument("--every", type=int, default=40, help="translate one of so many batches (default: 40)")
    parser.add_argument("--before", type=Path, help="profile.json of an earlier run")
    parser.add_argument("--beam", type=int, default=4)
    args, args.more = parser.parse_known_args()
    args.device = "cpu"
    return args


def phases(system: System, steps: int) -> Dict[str, float]:
    """Returns milliseconds a target token of collating and of the phases of training, without the profiler."""
    total, tokens = defaultdict(float), 0
    samples = system.samples(0, steps)
    for _ in range(steps):
        marks = [clock()]
        sample = next(samples)
        marks.append(clock())
        system.optimizer.zero_grad()
        loss, size, _ = system.criterion(system.model, system.prepared(sample))
        marks.append(clock())
        system.optimizer.backward(loss)
        marks.append(clock())
        system.optimizer.multiply_grads(1 / size)
        system.optimizer.step()
        marks.append(clock())
        for name, start, end in zip(("collating", "forward", "backward", "Adam"), marks, marks[1:]):
            total[name] += 1000 * (end - start)
        tokens += system.target_tokens(sample)
    return {name: milliseconds / tokens for name, milliseconds in total.items()}


def training(system: System, steps: int) -> int:
    """Trains; returns the target tokens."""
    tokens = 0
    for sample in system.samples(0, steps):
        system.step(sample)
        tokens += system.target_tokens(sample)
    return tokens


def translating(translator: Translator) -> int:
    """Translates; returns the target tokens."""
    return translator.translate()[1]


def measure(args: argparse.Namespace) -> Dict[str, Dict[str, Dict[str, float]]]:
    """Returns milliseconds a target token, by part of the work, system and kind."""
    result = {"phases of training": {}, "training": {}, "translating": {}}
    for name in DESCRIPTIONS:
        system = System(name, args)
        training(system, 1)
        result["phases of training"][name] = phases(system, args.steps)
        result["training"][name] = kinds(training, system, args.steps)
    for name in DESCRIPTIONS:
        result["translating"][name] = kinds(translating, Translator(name, args))
    return result


def one_table(title: str, now: Dict[str, Dict[str, float]], before: Dict[str, Dict[str, float]]) -> str:
    """Returns shares of the time of stock in the same run, which is 100."""

    def relative(of: Dict[str, Dict[str, float]], name: str, kind: str) -> str:
        part = sum(of[name].values()) if kind == "all" else of[name][kind]
        return f"{100 * part / sum(of['stock'].values()):.1f}"

    header, rows = [f"{title} (stock: 100)"], []
    for name in now:
        header += [f"{name}, before", name] if before and name != "stock" else [name]
    for kind in [*next(iter(now.values())), "all"]:
        row = [kind]
        for name in now:
            row += [relative(before, name, kind)] if before and name != "stock" else []
            row.append(relative(now, name, kind))
        rows.append(row)
    return table(header, rows)


def report(args: argparse.Namespace, result: dict, before: dict) -> str:
    sizes = f"{args.layers} + {args.layers} layers, width {args.width}, feed-forward {args.ffn}, {args.heads} heads"
    compared = " Columns `before`: an earlier run, against stock in that run." if before else ""
    return "\n\n".join(
        [
            "# Where the time goes",
            f"`{command()}`  \n{machine()}; {threads()}",
            f"{sizes}; --max-tokens {args.max_tokens}. Time a target token, as a percentage of what the stock task "
            "needs for one; kinds of operations as torch.profiler, whose own cost is in them, counts them." + compared,
            *(one_table(title, part, before.get(title, {})) for title, part in result.items()),
        ]
    )


def main() -> None:
    args = options()
    begin()
    before = json.loads(args.before.read_text(encoding="utf-8"))["parts"] if args.before else {}
    result = measure(args)
    publish("profile", report(args, result, before), parts=result)


if __name__ == "__main__":
    main()
