"""Updates the section on speed of docs/benchmarks.md from the results of the benchmarks.

    python -m benchmarks.summary [--check]

--check: report an error if the section differs from the results, without writing it.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Callable

from benchmarks.lib.reporting import RESULTS, ROOT, table

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- begin of python benchmarks/summary.py -->\n", "<!-- end -->\n"


def results(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def kernels() -> str:
    facts = results("conditional_attention")
    passes = ("fwd", "fwd + bwd")
    rows = []
    memory = {point["sentences"]: point["memory"] for point in facts["memory"]}
    for point in facts["points"]:
        if point["t"] == 4:
            n = point["sentences"]
            row = [f"{25 * n:,} ({n})"]
            for name in ("compiled", "torch"):
                row.append(", ".join(f"{point['ratios'][name][part]:.2f}" for part in passes))
                peak = memory[n][name][passes[1]] / memory[n]["flash"][passes[1]] if n in memory else None
                row.append("" if peak is None else f"{peak:.2f}")
            rows.append(row)
    header = ["words (sentences)", "compiled: time", "memory", "PyTorch: time", "memory"]
    return (
        "Conditional attention, t = 4, ÷ PyTorch's flash attention over the whole document "
        "(`conditional_attention.md`; time forward, forward and backward; memory of both):\n\n" + table(header, rows)
    )


def complexity() -> str:
    layers = results("complexity")["layers"]
    names = {
        "flash": "whole document, flash",
        "encodings": "sentence encodings",
        "conditional": "conditional",
        "tree": "tree",
        "sentence": "per sentence",
    }
    parts = [
        f"{label} {layers[name]['exponents']['core n']:.2f} (to {layers[name]['in_n'][-1]['sentences']:,})"
        for name, label in names.items()
    ]
    return f"- exponent of the time in the number of sentences (`complexity.md`): {', '.join(parts)};"


def crossover() -> str:
    least: dict[str, dict[int, int]] = {}
    for point in results("tree_crossover")["points"]:
        for name, times in point["times"].items():
            of_kernel = least.setdefault(name, {})
            if times["ratio"] > 1:
                of_kernel.pop(point["t"], None)
            else:
                of_kernel.setdefault(point["t"], point["sentences"])
    parts = [
        f"{name} {', '.join(f'{sentences:,} (t = {t})' for t, sentences in sorted(found.items()))}"
        for name, found in least.items()
    ]
    label = "- number of sentences from which tree selection is faster than flat selection (`tree_crossover.md`)"
    return f"{label}: {'; '.join(parts)};"


def training() -> str:
    systems = results("training_speed")["systems"]
    ratios = [f"{name} {systems[name]['ratio']:.2f}" for name in ("sentence", "conditional")]
    return (
        "- target tokens per second in training on English-German documents ÷ those of fairseq's `translation` task "
        f"and `transformer` of the same size (`training_speed.md`): {', '.join(ratios)};"
    )


def mechanisms() -> str:
    systems = results("mechanism_speed")["systems"]
    ordered = sorted((name for name in systems if name != "stock"), key=lambda name: -systems[name]["ratio"])
    parts = ", ".join(f"{name} {systems[name]['ratio']:.2f}" for name in ordered)
    return f"- the same for all mechanisms and baselines, in another run (`mechanism_speed.md`): {parts};"


def generation() -> str:
    rounds = {name: system["rounds"] for name, system in results("generation_speed")["systems"].items()}

    def ratio(name: str, other: str) -> str:
        return f"{statistics.median(a / b for a, b in zip(rounds[name], rounds[other])):.1f}"

    others = {
        "conditional, --search fairseq": "fairseq's search with the same model",
        "stock": "sentence-level `fairseq-generate`",
        "4-to-4": "a concatenation model with three context sentences that translates all four",
        "4-to-1": "one that translates the last",
    }
    parts = [f"{ratio('conditional', other)} × {label}" for other, label in others.items()]
    label = "- tokens per second of translating documents, beam 4, conditional attention (`generation_speed.md`)"
    return f"{label}: {', '.join(parts)};"


def indexing() -> str:
    steps = [values for name, values in results("indexing")["steps"].items() if not name.startswith("batches")]
    seconds, size = sum(step[0] for step in steps), max(step[1] for step in steps)
    return f"- indexing 50 million lines: {seconds:.0f} s, {size / 1e9:.1f} GB (`indexing.md`)."


LINES: list[Callable[[], str]] = [complexity, crossover, training, mechanisms, generation, indexing]


def section() -> str:
    """Returns the section with its markers."""
    lines = [BEGIN + "\n" + kernels() + "\n", *(line() for line in LINES), "\n" + END]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    new, number = re.subn(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: section(), text, flags=re.DOTALL)
    if number != 1:
        sys.exit(f"{PAGE.name}: needs one section between {BEGIN.strip()} and {END.strip()}")
    if args.check and new != text:
        sys.exit(f"{PAGE.name}: differs from benchmarks/results; run python -m benchmarks.summary")
    if not args.check:
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
