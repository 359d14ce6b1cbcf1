"""The report of long_range.py: stored figures, tables, plot."""

from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from benchmarks.lib.machine import table
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

BINS = ((1, 3), (4, 10), (11, 30), (31, 60), (61, 100))
REGIMES = ("all", "schedule", "from start", "at once")
FINDINGS, COMMANDS = "## What it says", "## Commands"  # between the two the report is written by hand, and stays
SHARES = ("attention", "best first", "walk by level", "walk by cumulative", "any head")  # of the walk's diagnosis
WALK = """\
## Does the walk find the deciding sentence?

For the words that only context decides in {documents} test documents, t = {t}; of each model and kind, the head that
attends most to the deciding sentence if everything is kept (**attention**: how much, in %). **Best first**: the share
of the words for which that sentence is among the t of highest cumulative relevance, all leaves compared. **Walk**: the
share for which the walk finds it, cut by the scores of each level or by cumulative ones; **any head**: for which some
head of that layer does, cut as the model does it."""
PATHS = """\
The same heads. **Spread**: standard deviation of q·k/√d_k over the nodes of a height, the word's mean: what a walk can
go by there. **Cut**: at which height the walk by level drops the deciding sentence, in % of the words."""
EXPLANATION = """\
An artificial corpus in which two kinds of words are decided by an earlier sentence, at distances drawn evenly from 1 to
100: a pronoun by the noun that shares a place with it, among six such nouns; an ambiguous word by the document's one
topic sentence. Documents have 104 to 120 sentences of 4 words; 100 of them are translated (beam 1).

Every model learns on short documents first (10 to 14 sentences, distances 1 to 6), then goes on over long ones
(`--finetune-from-model`). What a word keeps of its document: **all** sentences throughout; **schedule**: all on short
documents and at first on long ones, then ever fewer, linearly, at last t; **from start**: t from the first update, on
short documents already; **at once**: all on short documents, t from the first long one. An update has up to 1,000
tokens of short documents, or one long document. Figures beside each other are the seeds', in order."""


def shares(run: dict, kind: str) -> List[Optional[float]]:
    """Returns a run's accuracy on a kind in every range of ``BINS``, then over all distances; None without cases."""
    figures = {int(distance): figure for distance, figure in run["right_of_cases"][kind].items()}
    sums = [_sum(figures, low, high) for low, high in (*BINS, (BINS[0][0], BINS[-1][1]))]
    return [right / cases if cases else None for right, cases in sums]


def _sum(figures: Dict[int, List[int]], low: int, high: int) -> Tuple[int, int]:
    parts = [figure for distance, figure in figures.items() if low <= distance <= high]
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def order(run: dict) -> tuple:
    """Returns what models are sorted by."""
    return run["mechanism"], run["variant"], REGIMES.index(run["regime"]), run["t"]


def label(run: dict) -> str:
    """Returns a model's name, without its seed."""
    name = ", ".join(part for part in (run["mechanism"], run["variant"], run["regime"]) if part)
    return f"{name}, t = {run['t']}" if run["t"] else name


def by_model(runs: Sequence[dict]) -> List[List[dict]]:
    """Returns the runs of every model, by seed."""
    models: Dict[tuple, List[dict]] = {}
    for run in sorted(runs, key=lambda run: (order(run), run["seed"])):
        models.setdefault(order(run), []).append(run)
    return list(models.values())


def kind_table(runs: Sequence[dict], kind: str) -> str:
    """Returns accuracies by distance: a row a model, the seeds' figures side by side."""
    header = ["model", *(f"{low}-{high}" for low, high in BINS), "all distances"]
    rows = []
    for seeds in by_model(runs):
        columns = zip(*([_percent(share) for share in shares(run, kind)] for run in seeds))
        rows.append([label(seeds[0]), *(" / ".join(column) for column in columns)])
    return table(header, rows)


def line(run: dict) -> str:
    """Returns one line about a run, for the terminal."""
    kinds = (f"{kind} " + " ".join(map(_percent, shares(run, kind))) for kind in sorted(run["right_of_cases"]))
    return f"{label(run)}, seed {run['seed']}: {'; '.join(kinds)}"


def _percent(share: Optional[float]) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def draw(runs: Sequence[dict], ceilings: Dict[str, float], path: Path) -> None:
    """Writes the picture: a row of panels a kind, a column a mechanism and regime, a line a t (the seeds' mean)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    kinds = sorted(ceilings)
    narrow = {order(run) for run in runs if run["t"]}
    known = Counter(model[:3] for model in narrow)
    columns = sorted(column for column in known if known[column] > 2) or sorted(known)  # few t show no course
    figure = Figure(figsize=(1.5 + 2.2 * len(columns), 1 + 2.6 * len(kinds)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(kinds), len(columns), sharex=True, sharey=True, squeeze=False)
    for kind, row in zip(kinds, panels):
        for column, panel in zip(columns, row):
            everything = (*column[:2], REGIMES.index("all"))
            _draw_panel(panel, [run for run in runs if order(run)[:3] in (column, everything)], kind)
            panel.axhline(ceilings[kind], color="#555555", linestyle="--", linewidth=1, label="best without context")
            panel.set_title("\n".join(filter(None, (column[0], column[1], REGIMES[column[2]]))), fontsize="small")
        row[0].set_ylabel(kind)
    panels[0][0].set(ylim=(0, 1.04))
    panels[0][0].set_xticks(range(len(BINS)), [f"{low}-{high}" for low, high in BINS])
    panels[0][0].yaxis.set_major_formatter(PercentFormatter(1.0))
    entries = {name: handle for panel in panels.flat for handle, name in zip(*panel.get_legend_handles_labels())}
    figure.legend(entries.values(), entries.keys(), loc="outside right center")
    figure.supxlabel("sentences back to the deciding one", fontsize="medium")
    figure.suptitle("Words that only context decides, translated right (a point a seed, lines their mean)")
    figure.savefig(path)


def _draw_panel(panel: Any, runs: Sequence[dict], kind: str) -> None:
    for seeds in by_model(runs):
        t = seeds[0]["t"]
        number = t.bit_length()  # 0 for all, 1, 2, 4, 8: a colour each, whatever else is shown
        style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4}
        curves = [shares(run, kind)[:-1] for run in seeds]
        for curve in curves if len(curves) > 1 else ():
            panel.plot(curve, linestyle="none", alpha=0.5, **style)
        mean = [sum(values) / len(values) for values in zip(*curves)]
        panel.plot(mean, label=f"t = {t}" if t else "all kept", linewidth=1.3, **style)
    panel.grid(alpha=0.25)
    panel.tick_params(labelsize="small")
    panel.spines[["top", "right"]].set_visible(False)


def budgets(runs: Sequence[dict]) -> str:
    """Returns how long models are trained, and what sets variants apart: a row a variant."""
    rows = {}
    for run in runs:
        budget, options = run["budget"], f"`{run['options']}`" if run["options"] else ""
        narrowing = f"{budget['narrow_from']:,} to {budget['narrow_to']:,}"
        rows[run["variant"]] = [
            run["variant"] or "usual",
            f"{budget['short']:,}",
            f"{budget['long']:,}",
            narrowing,
            options,
        ]
    header = ["variant", "updates on short documents", "on long ones", "narrowing there, by the schedule", "options"]
    return table(header, [rows[variant] for variant in sorted(rows)])


def walk_tables(diagnosis: Dict[str, dict]) -> List[str]:
    """Returns the tables of long_range_diagnosis.py, from {model: {"t", "documents", "kinds": {kind: figures}}}."""
    found, paths = [], []
    for model, figures in diagnosis.items():
        for kind, of_kind in figures["kinds"].items():
            found.append([f"{model}: {kind}", of_kind["words"], *(_percent(of_kind[share]) for share in SHARES)])
            paths.append([f"{model}: {kind}, spread", *(f"{value:.2f}" for value in of_kind["spread"])])
            paths.append([f"{model}: {kind}, cut", *map(_percent, of_kind["cut"])])
    heights = range(max(len(row) for row in paths) - 1)
    first = next(iter(diagnosis.values()))
    return [
        WALK.format(**first),
        table(["model", "words", *SHARES], found),
        PATHS,
        table(["model", *(f"height {height}" for height in heights)], paths),
    ]


def write(store: Store, folder: Path) -> None:
    """Writes long_range.md and .png; what is written by hand in an earlier report stays."""
    runs, facts, path = list(store.runs.values()), store.facts, folder / "long_range.md"
    earlier = path.read_text(encoding="utf-8") if path.exists() else ""
    findings = FINDINGS + earlier.partition(FINDINGS)[2].partition(COMMANDS)[0].rstrip()
    sections = ["# Learning over long documents", facts["machine"], EXPLANATION, budgets(runs)]
    for kind, ceiling in facts["ceilings"].items():
        sections += [f"## {kind}", f"Right, in %, by distance ({100 * ceiling:.1f} % at best without context):"]
        sections += [kind_table(runs, kind)]
    sections += ["![Accuracy by distance](long_range.png)"]
    sections += walk_tables(facts["diagnosis"]) if "diagnosis" in facts else []
    sections += [findings, COMMANDS, "\n".join(["```", *facts["calls"], "```"])]
    draw(runs, facts["ceilings"], folder / "long_range.png")
    path.write_text("\n\n".join(filter(None, sections)) + "\n", encoding="utf-8")
