"""Reports of the handbook studies: tables and figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.lib.recipe_results import BASELINE, CONTEXTS
from benchmarks.lib.reporting import Store, command, finish, new_figure, style, table, write
from docnmt_fairseq.evaluation.plots import COLOURS, MARKERS

TEST = "test"
DISTANCES = """\
By distance in sentences to the last one with an unambiguous register in the reference: right registers in % of the
labelled sentences whose translation shows a register (all seeds), and their number."""
CONTEXT_ONLY = """\
All models start from the sentence-level model of [the small budget](manuals_small_budget_{finished}.md) after
{finished:,} updates and are trained for {updates:,} more. `sentence`: all parameters; `conditional`: with conditional
attention, all parameters; `conditional-frozen`: conditional attention only (`--freeze-sentence-model`);
`conditional-lora`: in addition low-rank updates of rank 8 of all six projections."""
TALKS = """\
`test`: talks; `news`: news commentary. All models start from one sentence-level model; the learning rate falls to zero.
Training uses chunks of at most 24 sentences; context models translate whole documents."""
BY_MODEL = """\
Test set, whole documents; seeds in order. Register: right in % of the labelled sentences that show one. Gain in BLEU
over the sentence-level model of the same seed, p by a bootstrap over documents. CXMI: nats per sentence."""


def small_budget_text(updates: int, pieces: bool) -> str:
    """Returns the description of the small budget."""
    view = "in chunks of at most 24 sentences, as in training" if pieces else "as whole documents"
    return (
        "The recipe `en_de_manuals` with width 192, 3 + 2 layers, 4,000 joint subwords and batches of 2,500 tokens. "
        "Each seed has its own sentence-level start of 5,000 updates; every model is trained for "
        f"{updates:,} more, with a learning rate that falls to zero. Context models translate {view}. Variants: see "
        "`VARIANTS` in `benchmarks/experiments/handbooks.py`."
    )


def shown(value: float | None) -> str:
    """Returns a score with one digit."""
    return "–" if value is None else f"{value:.1f}"


def share(right: int, cases: int) -> str:
    """Returns a percentage with the number of cases."""
    return f"{100 * right / cases:.1f} ({cases})" if cases else "–"


def by_distance(runs: Mapping[str, Sequence[dict]], test_set: str) -> str:
    """Returns a table of right registers: one row per model, one column per group of distances."""
    groups = list(next(iter(runs.values()))[0]["distances"][test_set])
    rows = [
        [name, *(share(*map(sum, zip(*(run["distances"][test_set][group] for run in seeds)))) for group in groups)]
        for name, seeds in runs.items()
    ]
    return table(["model", *groups], rows)


def seeds_of(stored: Store, model: str) -> list[int]:
    """Returns the seeds for which a model and the baseline are trained."""
    runs = stored.runs.values()
    return sorted(run["seed"] for run in runs if run["model"] == model and f"{BASELINE}-{run['seed']}" in stored.runs)


def values(stored: Store, model: str, measure: str, context: str) -> list[float]:
    """Returns a measure on the test set by seed.

    Args:
        stored: results of the small budget.
        model: name.
        measure: "bleu", "cxmi" or the name of a metric.
        context: key of ``CONTEXTS``.
    """
    found = []
    for seed in seeds_of(stored, model):
        scores = stored.runs[f"{model}-{seed}"]["scores"][TEST]
        translated = scores if context == "true" else scores.get("contexts", {}).get(context)
        if measure == "cxmi":
            found += [scores["cxmi"][context]] if context in scores.get("cxmi", {}) else []
        elif translated is not None:
            found.append(translated["bleu"] if measure == "bleu" else translated["metrics"][measure]["score"])
    return found


def by_model(stored: Store, updates: int, results: Path) -> None:
    """Writes table and figure of all models of the small budget, by right registers."""
    names = [name for name in dict.fromkeys(run["model"] for run in stored.runs.values()) if seeds_of(stored, name)]
    if not names:
        raise SystemExit(f"{stored.path}: no model with a sentence-level model of the same seed")
    names.sort(key=lambda name: mean(values(stored, name, "register", "true")), reverse=True)

    def cells(numbers: Sequence[float], form: str) -> str:
        return ", ".join(format(number, form) for number in numbers)

    rows, gains = [], {}
    for name in names:
        compared = [
            stored.runs[f"{name}-{seed}"]["scores"][TEST].get("significance") for seed in seeds_of(stored, name)
        ]
        gains[name] = [one["difference"] for one in compared if one]
        registers = [cells(values(stored, name, "register", one), ".1f") for one in ("true", "none", "shuffled")]
        scores = [cells(gains[name], "+.2f"), cells([one["p_value"] for one in compared if one], ".3f")]
        consistency = cells(values(stored, name, "register-consistency", "true"), ".1f")
        cxmi = [cells(values(stored, name, "cxmi", one), "+.2f") for one in ("true", "shuffled")]
        rows.append([name, len(compared), *registers, *scores, consistency, *cxmi])
    header = ["model", "seeds", "register", "without context", "with other context", "gain in BLEU", "p"]
    header += ["documents with one register", "CXMI", "CXMI with other context"]
    figure, (axes,) = new_figure(1, 3, (10, 1.6 + 0.32 * len(names)), sharey=True, width_ratios=[2, 1, 1])
    for place, name in enumerate(names):
        for number, (context, label) in enumerate(CONTEXTS.items()):
            look = {"marker": MARKERS[number], "linestyle": "none", "color": COLOURS[number], "alpha": 0.7}
            for axis, measure in ((axes[0], "register"), (axes[1], "cxmi")):
                points = values(stored, name, measure, context)
                axis.plot(points, [place] * len(points), label=None if place or axis is axes[1] else label, **look)
        axes[2].plot(gains[name], [place] * len(gains[name]), MARKERS[0], color=COLOURS[0], alpha=0.7)
    for axis, title in zip(axes, ("right register, %", "CXMI, nats per sentence", "gain in BLEU")):
        finish(axis, title=title, yticks=range(len(names)), yticklabels=names)
    axes[0].invert_yaxis()
    result = f"manuals_by_model_{updates}"
    figure.savefig(results / f"{result}.png")
    title = f"# Use of context by model, {updates:,} updates"
    write(result, [title, f"![By model]({result}.png)", table(header, rows), BY_MODEL, f"`{command()}`"], results)


def by_updates(stores: Mapping[int, Store], model: str, pieces: bool, results: Path) -> None:
    """Writes table and figure of a model by number of updates, means over seeds."""
    known = {updates: stores[updates] for updates in sorted(stores) if seeds_of(stores[updates], model)}
    if not known:
        raise SystemExit(f"{results}: no results of {model} with a sentence-level model; run small-budget")
    columns = [("bleu", BASELINE, "true"), ("bleu", model, "true"), ("register", BASELINE, "true")]
    columns += [("register", model, context) for context in CONTEXTS] + [
        ("cxmi", model, "true"),
        ("cxmi", model, "shuffled"),
    ]
    curves = {
        column: [mean(values(one, column[1], column[0], column[2])) for one in known.values()] for column in columns
    }
    rows = [
        [f"{updates:,}", len(seeds_of(stored, model)), *(f"{curve[place]:.3f}" for curve in curves.values())]
        for place, (updates, stored) in enumerate(known.items())
    ]
    names = [
        f"{measure}, {name}" + ("" if context == "true" else f", {CONTEXTS[context]}")
        for measure, name, context in columns
    ]
    figure, (panels,) = new_figure(1, 3, (10, 3.8))
    for panel, measure in zip(panels, ("register", "bleu", "cxmi")):
        for number, (column, label) in enumerate(zip(columns, names)):
            if column[0] == measure:
                panel.plot(list(known), curves[column], label=label, **style(number))
        finish(panel, title=measure, xlabel="updates after the start")
    figure.savefig(results / "manuals_by_updates.png")
    view = "in chunks, as in training" if pieces else "as whole documents"
    parts = [f"# Use of context by number of updates: {model}", table(["updates", "seeds", *names], rows)]
    parts += [f"Test set, means over seeds; documents are translated {view}.", "![By updates](manuals_by_updates.png)"]
    write("manuals_by_updates", [*parts, f"`{command()}`"], results)
