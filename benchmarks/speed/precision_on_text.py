"""Exported models in float32, bfloat16 and int8 on real text: quality, size, speed, latency, memory.

    python -m benchmarks.speed.precision_on_text --data WORK/data --source test.en --reference test.de \\
        --models sentence=CHECKPOINT conditional=CHECKPOINT [--language de --labels test.register.tsv] …

Every model is exported in every precision and translates as docnmt translate does, on one thread. Documents go in
parts, and systems take turns at each part, so that speeds are of the same time; so do they for latencies. Peak memory
is that of a process of its own, beyond what its imports take. Intervals are of the paired bootstrap over documents.
Writes benchmarks/results/precision_on_text.md and .json, without any text.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

from tqdm import tqdm

from benchmarks.lib.machine import begin, clock, machine, table, threads, write, write_figures
from benchmarks.lib.peak_memory import peak_of, print_peak
from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.base import Metric
from docnmt_fairseq.evaluation.significance import SEED, TESTS
from docnmt_fairseq.evaluation.texts import References, Stream, read_references, segments
from docnmt_fairseq.export.write import export
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator

PRECISIONS = ("float32", "bf16", "int8")
WANTED = 0.1  # BLEU that fewer bits may cost


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="what docnmt prepare wrote")
    parser.add_argument("--source", type=Path, required=True, help="delimited text")
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--models", nargs="+", required=True, metavar="NAME=CHECKPOINT")
    parser.add_argument("--language", help="whose registers are told apart")
    parser.add_argument("--labels", type=Path, help="which lines need which register")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--parts", type=int, default=5, help="that the documents are divided into")
    parser.add_argument("--rounds", type=int, default=5, help="of latencies")
    parser.add_argument("--sentences", type=int, default=50, help="of the document whose latency is measured")
    return parser.parse_args()


def translator(path: str, data: str, beam: int) -> DocumentTranslator:
    """Returns the translator of an exported model."""
    return DocumentTranslator.from_checkpoint(path, data=data, search=SearchOptions(beam=beam), cpu=True)


def document_of(stream: Stream, sentences: int) -> List[str]:
    """Returns the first sentences of the first document that has so many, or of all."""
    long = next((document for document in stream if len(document) >= sentences), None)
    return (long or segments(stream))[:sentences]


def translate_by_turns(args: argparse.Namespace, systems: Dict[str, DocumentTranslator], source: Stream) -> dict:
    """Returns the translations of every system, and its tokens and seconds by part."""
    found: Dict[str, Any] = {name: {"translations": [], "tokens": [], "seconds": []} for name in systems}
    bounds = [len(source) * part // args.parts for part in range(args.parts + 1)]
    for part in tqdm(range(args.parts), desc="parts", disable=None):
        documents = source[bounds[part] : bounds[part + 1]]
        for name in turned(list(systems), part):
            before, start = systems[name].throughput.tokens, clock()
            found[name]["translations"] += systems[name].translate(documents)
            found[name]["seconds"].append(clock() - start)
            found[name]["tokens"].append(systems[name].throughput.tokens - before)
    return found


def latencies(args: argparse.Namespace, systems: Dict[str, DocumentTranslator], document: List[str]) -> dict:
    """Returns the median seconds of the document, and of each of its sentences by itself, of every system."""
    seconds: Dict[str, Dict[str, List[float]]] = {name: {"sentence": [], "document": []} for name in systems}
    for number in tqdm(range(args.rounds), desc="rounds", disable=None):
        for name in turned(list(systems), number):
            sentence = document[number % len(document)]
            for what, lines in (("sentence", [sentence]), ("document", document)):
                start = clock()
                systems[name].translate([lines])
                seconds[name][what].append(clock() - start)
    return {name: {what: statistics.median(one) for what, one in of.items()} for name, of in seconds.items()}


def turned(names: List[str], by: int) -> List[str]:
    """Returns the names, another one first every time."""
    return names[by % len(names) :] + names[: by % len(names)]


def metrics_of(args: argparse.Namespace, references: References) -> Dict[str, Metric]:
    """Returns the metrics by name."""
    found = {name: METRICS[name](references, METRICS[name].Options()) for name in ("bleu", "chrf")}
    if args.language:
        told = {"register_language": args.language, "register_labels": args.labels and str(args.labels)}
        found["register"] = METRICS["register"](references, METRICS["register"].Options(**told))
    return found


def scores_of(metrics: Dict[str, Metric], first: Stream, own: Stream) -> dict:
    """Returns of every metric the score, and its difference to the first system's with an interval."""
    test, found = TESTS["documents"](), {}
    for name, metric in metrics.items():
        systems = dict(zip(("first", "own"), metric.statistics([first, own])))
        outcome = test.compare(metric, systems, test.samples, SEED).outcomes["own"]
        found[name] = {
            "score": outcome.score,
            "difference": outcome.difference,
            "interval": outcome.difference_interval,
        }
    found["same"] = statistics.mean(a == b for a, b in zip(segments(first), segments(own)))
    return found


def measure(args: argparse.Namespace) -> Dict[str, Dict[str, dict]]:
    """Returns all figures by model and precision."""
    references = read_references([args.reference], args.source)
    assert references.source is not None
    metrics, document = metrics_of(args, references), document_of(references.source, args.sentences)
    found: Dict[str, Dict[str, dict]] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for model, checkpoint in split(args.models):
            for precision in PRECISIONS:
                path = Path(folder) / f"{model}.{precision}.pt"
                export(checkpoint, path, precision=precision, data=args.data)
                paths[f"{model}/{precision}"] = path
        systems = {name: translator(str(path), args.data, args.beam) for name, path in paths.items()}
        for system in systems.values():
            system.translate([document[:2]])  # the first time is another one
        of_document = latencies(args, systems, document)
        of_text = translate_by_turns(args, systems, references.source)
        (Path(folder) / "document").write_text("\n".join(document), encoding="utf-8")
        for name, path in paths.items():
            model, precision = name.split("/")
            own, first = of_text[name], of_text[f"{model}/{PRECISIONS[0]}"]
            found.setdefault(model, {})[precision] = {
                "bytes": path.stat().st_size,
                "tokens": own["tokens"],
                "seconds": own["seconds"],
                "latency": of_document[name],
                "memory": peak_of(
                    "benchmarks.speed.precision_on_text",
                    "--memory-of",
                    path,
                    args.data,
                    args.beam,
                    f"{folder}/document",
                ),
                "scores": scores_of(metrics, first["translations"], own["translations"]),
            }
    return found


def print_memory(path: str, data: str, beam: str, text: str) -> None:
    """Prints the bytes that loading a model and translating a document take at most."""
    document = Path(text).read_text(encoding="utf-8").splitlines()
    print_peak(lambda: translator(path, data, int(beam)).translate([document]))


def report(args: argparse.Namespace, found: Dict[str, Dict[str, dict]]) -> str:
    """Returns the page."""
    parts = ["# Precision on real text", f"`{told(args)}`"]
    for model, systems in found.items():
        names = [name for name in systems[PRECISIONS[0]]["scores"] if name != "same"]
        rows = []
        for precision, one in systems.items():
            cells = []
            for name in names:
                score = one["scores"][name]
                low, high = score["interval"]
                cells.append(f"{score['score']:.2f}")
                if precision != PRECISIONS[0]:
                    cells[-1] += f" ({score['difference']:+.2f}; {low:+.2f} to {high:+.2f})"
            rows.append([precision, *cells, f"{one['scores']['same']:.1%}"])
        parts.append(table([model, *names, "same sentences"], rows))
        rows = []
        for precision, one in systems.items():
            ratios = [
                (tokens / seconds) / (other / others)
                for tokens, seconds, other, others in zip(
                    one["tokens"], one["seconds"], systems[PRECISIONS[0]]["tokens"], systems[PRECISIONS[0]]["seconds"]
                )
            ]
            rows.append(
                [
                    precision,
                    f"{one['bytes'] / 1e6:,.1f}",
                    f"{sum(one['tokens']) / sum(one['seconds']):,.0f}",
                    f"{statistics.median(ratios):.2f}",
                    f"{1000 * one['latency']['sentence']:,.0f}",
                    f"{one['latency']['document']:,.2f}",
                    f"{one['memory'] / 1e6:,.0f}",
                ]
            )
        header = [
            model,
            "file, MB",
            "tokens/s",
            "÷ float32",
            "a sentence, ms",
            f"{args.sentences} sentences, s",
            "peak, MB",
        ]
        parts.append(table(header, rows))
    worst = max(
        abs(one["scores"]["bleu"]["difference"])
        for systems in found.values()
        for precision, one in systems.items()
        if precision != PRECISIONS[0]
    )
    parts.append(
        f"Largest difference in BLEU: {worst:.2f}, wanted at most {WANTED}: {'met' if worst <= WANTED else 'missed'}."
    )
    parts.append(
        f"Differences to float32 with 95 % intervals. Beam {args.beam}; times are those of whole calls, from text to "
        f"text; tokens are those of the translations; {threads()}. {machine()}."
    )
    return "\n\n".join(parts)


def told(args: argparse.Namespace) -> str:
    """Returns the command as anybody would give it."""
    models = [f"{name}=path/to/{Path(path).parent.name}/{Path(path).name}" for name, path in split(args.models)]
    words = [
        "--data path/to/data",
        f"--source path/to/{args.source.name}",
        f"--reference path/to/{args.reference.name}",
    ]
    words += ["--models", *models, f"--beam {args.beam}"]
    words += [f"--language {args.language}"] if args.language else []
    words += [f"--labels path/to/{args.labels.name}"] if args.labels else []
    return " ".join(["python -m benchmarks.speed.precision_on_text", *words])


def split(models: List[str]) -> List[Tuple[str, str]]:
    """Returns names and checkpoints."""
    return [(name, path) for name, _, path in (model.partition("=") for model in models)]


def main() -> None:
    if sys.argv[1:2] == ["--memory-of"]:
        begin(1)
        print_memory(*sys.argv[2:])
        return
    args = options()
    begin(1)
    found = measure(args)
    facts = {"command": told(args), "machine": machine(), "threads": 1, "models": found}
    write("precision_on_text.md", report(args, found))
    write_figures("precision_on_text.json", facts)


if __name__ == "__main__":
    main()
