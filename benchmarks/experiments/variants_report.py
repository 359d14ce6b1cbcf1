"""The report of variants.py: tables, learning curves."""

from pathlib import Path
from statistics import mean
from typing import Dict, List, Sequence

from benchmarks.experiments.comparison_report import ALL, beside, by_distance, share
from benchmarks.experiments.long_range_report import COMMANDS, FINDINGS
from benchmarks.lib.machine import table
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

PARTS = {"synthetic": "Artificial documents", "text": "English-German documents"}
EXPLANATION = """\
Every variant has the same optimiser, updates and tokens an update (`benchmarks/variants/{suite}.yaml`); corpora as in
`comparison.md`. Figures beside each other are those of the seeds, in order. nll: validation loss in bits a token."""


def of_part(store: Store, part: str, order: Sequence[str]) -> Dict[str, List[dict]]:
    """Returns the runs of a part by variant, each by seed."""
    runs = [run for run in store.runs.values() if run["part"] == part]
    found = {name: sorted((run for run in runs if run["model"] == name), key=lambda run: run["seed"]) for name in order}
    return {name: seeds for name, seeds in found.items() if seeds}


def line(run: dict) -> str:
    """Returns one line about a run, for the terminal."""
    kinds = run.get("right_of_cases", {})
    shares = [f"{kind} {100 * share(run, kind, *ALL):.1f} %" for kind in sorted(kinds)]
    scores = [f"BLEU {run['bleu']:.2f}", f"nll {lowest(run):.3f}"]
    return f"{run['part']}: {run['model']}, seed {run['seed']}: {', '.join([*scores, *shares])}"


def lowest(run: dict) -> float:
    """Returns the lowest validation loss of a run."""
    return min(loss for _, loss in run["curve"])


def overview(variants: Dict[str, List[dict]], kinds: Sequence[str]) -> str:
    """Returns the table of all variants: a row each."""
    rows = []
    for name, seeds in variants.items():
        shares = [beside([share(run, kind, *ALL) for run in seeds], factor=100) for kind in kinds]
        scores = [beside([run[score] for run in seeds], 2) for score in ("bleu", "chrf")]
        losses = beside([lowest(run) for run in seeds], 3)
        rows.append([name, f"{seeds[0]['parameters']:,}", losses, *scores, *shares])
    return table(["variant", "parameters", "nll", "BLEU", "chrF", *(f"{kind}, %" for kind in kinds)], rows)


def sections(store: Store, order: Sequence[str], suite: str) -> List[str]:
    """Returns the parts of the report that have figures."""
    found = []
    for part, title in PARTS.items():
        variants = of_part(store, part, order)
        if not variants:
            continue
        kinds = sorted(store.facts["ceilings"]) if part == "synthetic" else []
        updates = sorted({f"{run['updates']:,}" for seeds in variants.values() for run in seeds})
        found += [f"## {title}", f"{', '.join(updates)} updates.", overview(variants, kinds)]
        for kind in kinds:
            best = 100 * store.facts["ceilings"][kind]
            found += [f"**{kind}**, right in %, by distance ({best:.1f} % at best without context):"]
            found += [by_distance(variants, kind)]
        found += [f"![Learning curves](variants_{suite}_{part}.png)"]
    return found


def draw(variants: Dict[str, List[dict]], title: str, path: Path) -> None:
    """Writes the picture of the learning curves: validation loss against updates, the mean of the seeds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.5, 4.8), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    for number, (name, seeds) in enumerate(variants.items()):
        updates = [update for update, _ in seeds[0]["curve"]]
        losses = [mean(losses) for losses in zip(*([loss for _, loss in run["curve"]] for run in seeds))]
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)], "markersize": 3.5}
        dashes = ("-", "--", ":")[number // len(COLOURS) % 3]
        panel.plot(updates[: len(losses)], losses, dashes, label=name, linewidth=1.3, **style)
    panel.set(xlabel="updates", ylabel="validation loss, bits a token", title=title)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize="small")
    figure.savefig(path)


def write(store: Store, title: str, question: str, order: Sequence[str], folder: Path, suite: str) -> None:
    """Writes variants_SUITE.md and its pictures; what is written by hand in an earlier report stays."""
    path = folder / f"variants_{suite}.md"
    earlier = path.read_text(encoding="utf-8") if path.exists() else ""
    written = earlier.partition(FINDINGS)[2].partition(COMMANDS)[0].strip()
    findings = [FINDINGS, written] if written else []
    lines = [f"# {title}", store.facts["machine"], question.strip(), EXPLANATION.format(suite=suite)]
    lines += [*sections(store, order, suite), *findings]
    lines += [COMMANDS, "\n".join(["```", *store.facts["calls"], "```"])]
    for part in PARTS:
        variants = of_part(store, part, order)
        if variants:
            draw(variants, f"{title}: {PARTS[part]}", folder / f"variants_{suite}_{part}.png")
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
