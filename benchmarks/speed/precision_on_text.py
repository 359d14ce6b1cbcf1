"""Quality and speed of docnmt translate --precision float32, bf16 and int8 on real text.

    python -m benchmarks.speed.precision_on_text --data WORK/data --source test.en --reference test.de \\
        --models sentence=CHECKPOINT conditional=CHECKPOINT [--language de --labels test.register.tsv] ...

Documents are translated in parts, systems take turns at each part. Intervals: paired bootstrap over documents.
"""

import argparse
import statistics
import sys
from itertools import pairwise
from pathlib import Path

from benchmarks.lib.measuring import by_turns, clock, run_benchmark
from benchmarks.lib.reporting import table
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import read_references, segments
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator

TITLE = "Precision on real text"
PRECISIONS = ("float32", "bf16", "int8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds options."""
    parser.set_defaults(threads=1)
    parser.add_argument("--data", required=True, help="output folder of docnmt prepare")
    parser.add_argument("--source", type=Path, required=True, help="delimited text")
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=CHECKPOINT")
    parser.add_argument("--language", help="language of the register metric")
    parser.add_argument("--labels", type=Path, help="required register by line")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--parts", type=int, default=5, help="number of parts of the test set")


def measure(args: argparse.Namespace) -> dict:
    """Returns scores with differences to float32, and tokens per second of each part, by model and precision."""
    references = read_references([args.reference], args.source)
    metrics = {name: METRICS[name](references, METRICS[name].Options()) for name in ("bleu", "chrf")}
    if args.language:
        options = {"register_language": args.language, "register_labels": args.labels and str(args.labels)}
        metrics["register"] = METRICS["register"](references, METRICS["register"].Options(**options))
    source, search, found = references.source, SearchOptions(beam=args.beam), {}
    assert source is not None
    bounds = [len(source) * part // args.parts for part in range(args.parts + 1)]
    for model, _, path in (one.partition("=") for one in args.models):
        systems = {
            precision: DocumentTranslator.from_checkpoint(
                path, data=args.data, search=search, cpu=True, precision=precision
            )
            for precision in PRECISIONS
        }
        translations: dict[str, list] = {precision: [] for precision in PRECISIONS}
        parts = {precision: pairwise(bounds) for precision in PRECISIONS}

        def part(precision: str) -> float:
            first, end = next(parts[precision])  # noqa: B023
            system = systems[precision]  # noqa: B023
            tokens, start = system.throughput.tokens, clock()
            translations[precision] += system.translate(source[first:end])  # noqa: B023
            return (system.throughput.tokens - tokens) / (clock() - start)

        speeds = by_turns({one: lambda one=one: part(one) for one in PRECISIONS}, args.parts, warmup=0)
        found[model] = {}
        for precision in PRECISIONS:
            first, own = translations[PRECISIONS[0]], translations[precision]
            scores = {}
            for name, metric in metrics.items():
                test = TESTS["documents"]()
                statistics_ = {"first": metric.statistics(first), "own": metric.statistics(own)}
                outcome = test.compare(metric, statistics_, test.samples, SEED).outcomes["own"]
                scores[name] = [outcome.score, outcome.difference, *outcome.difference_interval]
            same = statistics.mean(a == b for a, b in zip(segments(first), segments(own)))
            found[model][precision] = {"scores": scores, "same": same, "speed": speeds[precision]}
    return {"models": found}


def report(args: argparse.Namespace, figures: dict) -> list[str]:
    """Returns the paragraphs of the report."""
    parts = []
    for model, systems in figures["models"].items():
        names = list(systems[PRECISIONS[0]]["scores"])
        rows = []
        for precision, one in systems.items():
            cells = ["{:.2f} ({:+.2f}; {:+.2f} to {:+.2f})".format(*scores) for scores in one["scores"].values()]
            ratios = [own / first for own, first in zip(one["speed"], systems[PRECISIONS[0]]["speed"])]
            speed = [f"{statistics.median(one['speed']):,.0f}", f"{statistics.median(ratios):.2f}"]
            rows.append([precision, *cells, f"{one['same']:.1%}", *speed])
        parts.append(table([model, *names, "same sentences", "tokens/s", "÷ float32"], rows))
    text = f"Scores with difference to float32 and its 95 % interval. Beam {args.beam}; times from text to text."
    return [*parts, text]


if __name__ == "__main__":
    sys.exit(run_benchmark("benchmarks.speed.precision_on_text"))
