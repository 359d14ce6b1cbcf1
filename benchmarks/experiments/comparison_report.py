"""The report of comparison.py: tables, plot."""

from pathlib import Path
from statistics import mean
from typing import Any, Dict, List, Optional, Sequence, Tuple

from benchmarks.experiments.long_range_report import COMMANDS, FINDINGS
from benchmarks.lib.machine import table
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

BINS = ((1, 1), (2, 2), (3, 3), (4, 6), (7, 10))
ALL = (BINS[0][0], BINS[-1][1])
NOTHING, ONE, THREE, DOCUMENT = "nothing", "1 sentence back", "3 sentences back", "the whole document"
REACH = {  # the models in the order of the tables, and what a sentence sees
    "sentence": NOTHING,
    "concatenation": ONE,
    "concatenation-2to2": ONE,
    "memory": ONE,
    "context-aware": ONE,
    "concatenation-4to1": THREE,
    "memory-3": THREE,
    "han": THREE,
    "han-target": THREE,
    "han-both": THREE,
    "sentence-attention": DOCUMENT,
    "conditional": DOCUMENT,
    "tree": DOCUMENT,
}
EXPLANATION = """\
Every model has the same sizes, optimiser, updates and sentences an update (`docnmt recipe`; options by name:
`docnmt_fairseq/recipes/models.py`). Figures beside each other are those of seeds 1 and 2."""
SYNTHETIC = """\
## Artificial documents: which mechanism reaches how far back?

Documents of 22 to 26 sentences of 4 words, with three kinds of words that an earlier sentence decides, 1 to 10
sentences back, every distance equally often: a pronoun by the noun that shares a place with it, among three; an
ambiguous word by the document's one topic sentence; formality by how the paragraph opens. 3 encoder layers, 1 decoder
layer, width 64. In `conditional` and `tree` every word sees all sentences at first; after three quarters of the
updates, as soon as `selected_mass` is 0.9, attention jumps to 4. What a sentence sees (`han-target`: on the target
side, `han-both`: on both):"""
CHAINED = """\
**In reach by way of earlier translations**: words, in %, whose deciding sentence is one of the last three, or decides a
word of the same kind in one of them that was itself in reach. Who sees target sentences can get these right, and others
only by luck."""
TEXT = """\
## English-German documents

Tiny models on a CPU, a few epochs of {sentences:,} training sentences: **all are far from trained**, and scores this
low say little about context. nll: validation loss in bits a token of the checkpoint that translates, documents as the
model is made to see them, and with all context hidden."""


def share(run: dict, kind: str, low: int, high: int) -> Optional[float]:
    """Returns a run's accuracy on a kind at distances from ``low`` to ``high``; None without cases."""
    figures = run["right_of_cases"].get(kind, {}).items()
    right, cases = map(sum, zip((0, 0), *(figure for distance, figure in figures if low <= int(distance) <= high)))
    return right / cases if cases else None


def by_model(runs: Sequence[dict], part: str) -> Dict[str, List[dict]]:
    """Returns the runs of a part by model, in the order of ``REACH``, each by seed."""
    several = [run for run in runs if run["part"] == part]
    found = {name: sorted((r for r in several if r["model"] == name), key=lambda r: r["seed"]) for name in REACH}
    return {name: seeds for name, seeds in found.items() if seeds}


def beside(values: Sequence[Optional[float]], digits: int = 1, factor: float = 1.0) -> str:
    """Returns the seeds' figures side by side."""
    return " / ".join("–" if value is None else f"{factor * value:.{digits}f}" for value in values)


def overview(models: Dict[str, List[dict]], kinds: Sequence[str]) -> str:
    """Returns the table of what each model sees, has, and gets right over all distances, in %."""
    rows = []
    for name, seeds in models.items():
        shares = [beside([share(run, kind, *ALL) for run in seeds], factor=100) for kind in kinds]
        bleu = beside([run["bleu"] for run in seeds])
        rows.append([name, REACH[name], f"{seeds[0]['parameters']:,}", *shares, bleu])
    return table(["model", "sees", "parameters", *kinds, "BLEU"], rows)


def by_distance(models: Dict[str, List[dict]], kind: str) -> str:
    """Returns the accuracy on a kind by distance, in %: a row a model."""
    header = ["model", *map(_range, BINS)]
    rows = []
    for name, seeds in models.items():
        rows.append([name, *(beside([share(run, kind, *ends) for run in seeds], factor=100) for ends in BINS)])
    return table(header, rows)


def chain_table(counts: Dict[str, Dict[str, List[int]]]) -> str:
    """Returns the share of words in reach by way of earlier translations, in %: a row a kind."""
    rows = []
    for kind in sorted(counts):
        run = {"right_of_cases": counts}
        rows.append([kind, *(beside([share(run, kind, *ends)], factor=100) for ends in BINS)])
    return table(["kind", *map(_range, BINS)], rows)


def _range(ends: Tuple[int, int]) -> str:
    return "-".join(map(str, dict.fromkeys(ends)))


def text_table(models: Dict[str, List[dict]]) -> str:
    """Returns the scores on real text: a row a model."""
    header = ["model", "BLEU", "chrF", "nll", "nll without context", "updates", "parameters"]
    rows = []
    for name, seeds in models.items():
        scores = [beside([run[score] for run in seeds], 2) for score in ("bleu", "chrf")]
        losses = [beside([run.get(loss) for run in seeds], 3) for loss in ("nll", "nll_without_context")]
        rows.append([name, *scores, *losses, f"{seeds[0]['updates']:,}", f"{seeds[0]['parameters']:,}"])
    return table(header, rows)


def draw(models: Dict[str, List[dict]], ceilings: Dict[str, float], path: Path) -> None:
    """Writes the picture of accuracy against distance: a row of panels a kind, a column a reach, a line a model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    columns = {reach: [name for name in models if REACH[name] == reach] for reach in (ONE, THREE, DOCUMENT)}
    kinds = sorted(ceilings)
    figure = Figure(figsize=(11, 1.2 + 2.5 * len(kinds)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(kinds), len(columns), sharex=True, sharey=True, squeeze=False)
    for kind, row in zip(kinds, panels):
        for (reach, names), panel in zip(columns.items(), row):
            for number, name in enumerate(names):
                style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4, "linewidth": 1.3}
                panel.plot(*curve(models[name], kind), label=name, **style)
            panel.axhline(ceilings[kind], color="#555555", linestyle="--", linewidth=1, label="best without context")
            if reach != DOCUMENT:
                panel.axvline(int(reach.split()[0]) + 0.5, color="#555555", linestyle=":", linewidth=1)
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(kind)
    for panel, reach in zip(panels[0], columns):
        panel.set_title(f"sees {reach}", fontsize="medium")
    for panel in panels[-1]:
        panel.legend(fontsize="x-small", loc="upper right")
    panels[0][0].set(ylim=(0, 1.04), xticks=range(ALL[0], ALL[1] + 1))
    panels[0][0].yaxis.set_major_formatter(PercentFormatter(1.0))
    figure.supxlabel("sentences back to the deciding one", fontsize="medium")
    figure.suptitle("Words that only context decides, translated right (mean of the seeds)")
    figure.savefig(path)


def curve(seeds: Sequence[dict], kind: str) -> Tuple[List[int], List[float]]:
    """Returns distances and accuracies there, the mean of a model's runs."""
    distances = sorted(map(int, seeds[0]["right_of_cases"][kind]))
    return distances, [mean(share(run, kind, distance, distance) for run in seeds) for distance in distances]


def line(run: dict) -> str:
    """Returns one line about a run, for the terminal."""
    name = f"{run['part']}: {run['model']}, seed {run['seed']}"
    if run["part"] == "text":
        return f"{name}: BLEU {run['bleu']:.2f}, chrF {run['chrf']:.2f}, nll {run['nll']:.3f}"
    kinds = (
        f"{kind} {beside([share(run, kind, *ends) for ends in BINS], factor=100)}" for kind in run["right_of_cases"]
    )
    return f"{name}: {'; '.join(kinds)}"


def sections(store: Store) -> List[str]:
    """Returns the parts of the report that have figures."""
    runs: List[Dict[str, Any]] = list(store.runs.values())
    synthetic, text, ceilings = by_model(runs, "synthetic"), by_model(runs, "text"), store.facts["ceilings"]
    found = []
    if synthetic:
        updates = sorted({f"{run['updates']:,}" for seeds in synthetic.values() for run in seeds})
        found += [SYNTHETIC, overview(synthetic, sorted(ceilings))]
        found += [f"Right in %, over all distances. {', '.join(updates)} updates."]
        for kind in sorted(ceilings):
            found += [f"**{kind}**, by distance ({100 * ceilings[kind]:.1f} % at best without context):"]
            found += [by_distance(synthetic, kind)]
        found += [CHAINED, chain_table(store.facts["chained"]), "![Accuracy by distance](comparison.png)"]
    if text:
        found += [TEXT.format(sentences=store.facts["text_sentences"]), text_table(text)]
        signatures = sorted({seeds[0][f"{score}_signature"] for seeds in text.values() for score in ("bleu", "chrf")})
        found += [f"Signatures: {'; '.join(f'`{one}`' for one in signatures)}."]
    return found


def write(store: Store, folder: Path) -> None:
    """Writes comparison.md and .png; what is written by hand in an earlier report stays."""
    path = folder / "comparison.md"
    earlier = path.read_text(encoding="utf-8") if path.exists() else ""
    written = earlier.partition(FINDINGS)[2].partition(COMMANDS)[0].strip()
    findings = [FINDINGS, written] if written else []
    lines = ["# Every mechanism on the same budget", store.facts["machine"], EXPLANATION, *sections(store)]
    lines += [*findings, COMMANDS, "\n".join(["```", *store.facts["calls"], "```"])]
    synthetic = by_model(list(store.runs.values()), "synthetic")
    if synthetic:
        draw(synthetic, store.facts["ceilings"], folder / "comparison.png")
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
