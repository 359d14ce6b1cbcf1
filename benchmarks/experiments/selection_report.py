"""The report of selection.py: tables and one figure."""

from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

from benchmarks.lib.machine import table
from benchmarks.lib.store import Store
from docnmt_fairseq.evaluation.plots import COLOURS

GROUPS = ((1, 3), (4, 6), (7, 9), (10, 12))  # of the demo's distances
SHOWN = {"not": "not taught", "in a window": "taught in a window", "from the start": "taught from the start"}
TEXT = """\
Documents of 104 to 120 sentences of 4 words, two kinds of words decided by an earlier sentence, at distances drawn
evenly from 1 to 100. A model learns with all sentences, {short} updates on short documents and {dense} on long ones;
then t jumps from all sentences to what the table says, and {after} updates follow. Until the jump its selection is
taught (`--selection-loss`) from the start, as presets do, in a window of the last {window} updates, or not, with
weight 1 unless it says another; "until mass is 0.95": the jump waits until `selected_mass` is that (`--context-
narrow-when`), and the training is longer. Trees stand in the order of keys, walked with a beam of 16; they begin as
the same model. The text's order: what a walk with the same beam finds, of the same keys, if their means stand for
neighbours in the document. Right in %, over all distances, and how far nll rises above its lowest before the jump, at
worst and at the end; seeds beside each other."""

DEMO = """\
`scripts/demo.sh`: t jumps from all sentences after 85 % of the updates. nll is that of a token in bits, in validation,
at the last end of an epoch before the jump and at the end of training. Weight: of the selection loss; presets: 1."""


def _percent(right_of_cases: List[int]) -> float:
    return 100 * right_of_cases[0] / right_of_cases[1]


def demo_line(run: dict) -> str:
    """Returns one demo in a line."""
    worst = {kind: min(_percent(group) for group in groups.values()) for kind, groups in run["right_of_cases"].items()}
    return f"t = {run['t']}, seed {run['seed']}: worst group of distances " + ", ".join(
        f"{kind} {w:.1f}" for kind, w in worst.items()
    )


def line(run: dict) -> str:
    """Returns one cell in a line."""
    figures = ", ".join(f"{kind} {_percent(sums):.1f}" for kind, sums in run["right_of_cases"].items())
    return f"{run['mechanism']}, {run['taught']}, t = {run['t']}, seed {run['seed']}: {figures}"


def rise(run: dict, jump: int) -> Tuple[float, float]:
    """Returns how far nll rises above what it was before the jump: at worst, and at the end."""
    before = min(nll for update, nll in run["nll"] if update <= jump)
    after = [nll - before for update, nll in run["nll"] if update > jump]
    return max(after), after[-1]


class Schedule(NamedTuple):
    """Updates on short documents; on long ones, when a window begins, t jumps, and training ends."""

    short: int
    window: int
    jump: int
    end: int

    def told(self) -> str:
        """Returns what the trainings were."""
        window, after = self.jump - self.window, self.end - self.jump
        return TEXT.format(short=f"{self.short:,}", dense=self.jump, window=window, after=after)


def write(stored: Store, results: Path, schedule: Schedule, order: List[str]) -> None:
    """Writes the report and the figure.

    Args:
        stored: all runs.
        results: folder to write into.
        schedule: of the long documents' trainings.
        order: of the ways to teach.
    """
    lines = ["# Selection that learns", "", str(stored.facts["machine"]), ""]
    demos = [run for name, run in sorted(stored.runs.items()) if name.startswith("demo-")]
    cells = [run for name, run in stored.runs.items() if not name.startswith("demo-")]
    if demos:
        lines += ["## The demo, seed by seed", "", DEMO, "", _demos(demos), ""]
    if cells:
        lines += ["## Long documents", "", schedule.told(), "", _cells(cells, schedule.jump, order), ""]
        lines += [*stored.facts.get("remarks", []), ""]
        _figure(cells, schedule.jump, results / "selection.png")
        lines += ["![Validation loss across the jump](selection.png)", ""]
    lines += ["## Commands", "", "```bash", *stored.facts["calls"], "```"]
    (results / "selection.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _demos(demos: List[dict]) -> str:
    kinds = sorted(demos[0]["right_of_cases"])
    rows = []
    for run in sorted(demos, key=lambda run: (-run["weight"], -run["t"], run["seed"])):
        groups = run["right_of_cases"]
        sums = [[sum(part) for part in zip(*groups[kind].values())] for kind in kinds]
        worst = min(_percent(group) for kind in kinds for group in groups[kind].values())
        nll = [f"{nll:.3f}" for _, nll in run["nll"][-2:]]
        rows.append(
            [
                f"{run['weight']:g}",
                str(run["t"]),
                str(run["seed"]),
                *(f"{_percent(figure):.1f}" for figure in sums),
                f"{worst:.1f}",
                *nll,
            ]
        )
    head = ["weight", "t", "seed", *kinds, "worst kind and group of distances", "nll before the jump", "at the end"]
    return table(head, rows)


def _cells(cells: List[dict], jump: int, order: List[str]) -> str:
    rows: Dict[Tuple[str, str, int], List[dict]] = {}
    for run in cells:
        rows.setdefault((run["mechanism"], run["taught"], run["t"]), []).append(run)
    kinds = sorted(cells[0]["right_of_cases"])
    body = []
    for (mechanism, taught, t), runs in sorted(rows.items(), key=lambda row: (order.index(row[0][1]), row[0])):
        runs = sorted(runs, key=lambda run: run["seed"])
        right = [" / ".join(f"{_percent(run['right_of_cases'][kind]):.1f}" for run in runs) for kind in kinds]
        rises = [rise(run, jump) for run in runs]
        worst, end = (" / ".join(f"{part[place]:+.3f}" for part in rises) for place in (0, 1))
        found = [
            " / ".join("–" if run["found"] is None else f"{100 * run['found'][order]:.1f}" for run in runs)
            for order in ("keys", "text")
        ]
        seeds = ", ".join(str(run["seed"]) for run in runs)
        body.append([mechanism, taught, str(t), seeds, *right, worst, end, *found])
    shares = ["exact top t found, %", "by a walk in the text's order"]
    head = ["mechanism", "selection taught", "t", "seeds", *kinds, "nll rises by, at worst", "at the end", *shares]
    return table(head, body)


def _figure(cells: List[dict], jump: int, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    flat = [run for run in cells if run["mechanism"] == "conditional" and run["t"] in (2, 4)]
    shown = [run for run in flat if run["taught"] in SHOWN]
    kept = sorted({run["t"] for run in shown})
    figure = Figure(figsize=(4.2 * len(kept), 3.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(kept), sharey=True, squeeze=False)[0]
    for axis, t in zip(axes, kept):
        for run in sorted((run for run in shown if run["t"] == t), key=lambda run: list(SHOWN).index(run["taught"])):
            colour = COLOURS[list(SHOWN).index(run["taught"])]
            axis.plot(*zip(*run["nll"]), color=colour, label=SHOWN[run["taught"]])
        axis.axvline(jump, color="0.6", linestyle=":")
        axis.set(title=f"all sentences, then {t}", xlabel="updates on long documents")
    axes[0].set_ylabel("nll of a token, bits (validation)")
    entries = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels())}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries), frameon=False)
    figure.savefig(path)
