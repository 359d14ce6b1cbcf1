"""The report of manuals.py: the recipe's table, curves, register by distance, documents side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Sequence

from benchmarks.lib.curves import validation_curve
from benchmarks.lib.machine import table
from benchmarks.lib.recipe_figures import BASELINE
from docnmt_fairseq.evaluation.plots import COLOURS
from docnmt_fairseq.evaluation.register_rules import RegisterRule
from docnmt_fairseq.recipes.result_files import ResultFiles, read_json

if TYPE_CHECKING:
    from benchmarks.experiments.manuals import Name, TestSet

SHOWN = 8  # sentences of a document
GAINING = 10  # words that gain by context
ENOUGH = 3  # marked sentences of a document that is shown
FINDINGS = "## What it says"
DISTANCES = """\
By sentences back to the last one that shows a register for sure (in the reference): right of those marked lines whose
translation shows a register, in %, all seeds together, and how many these are."""
WORDS = """\
By how much the true context raises the log-probability of reference words in the mean (P-CXMI, nats, over all places
of a word in the sentences that CXMI is measured on, and how many these are): the {count} words that gain most, those
that begin a word in the vocabulary. Seed {seed}."""
WORD = "▁"  # begins a piece that begins a word
DOCUMENTS = """\
## Side by side

The first document of each register with {enough} marked sentences, from the first of them on; not chosen by how it was
translated, but of projects only whose texts may be passed on. Seed {seed}."""


def by_distance(test_set: "TestSet", rule: RegisterRule) -> str:
    """Returns a table: a row a model, a column a group of distances."""
    sums: Dict[str, Dict[str, List[int]]] = {}
    for name in test_set.translations:
        of_model = sums.setdefault(name[0], {})
        for group, figures in test_set.right_by_distance(name, rule).items():
            of_model[group] = [old + new for old, new in zip(of_model.get(group, [0, 0]), figures)]
    groups = list(next(iter(sums.values())))
    cells = {
        model: [f"{100 * right / cases:.1f} ({cases})" if cases else "–" for right, cases in of_model.values()]
        for model, of_model in sums.items()
    }
    return table(["model", *groups], [[model, *row] for model, row in cells.items()])


def side_by_side(test_set: "TestSet", shown: Sequence["Name"], left_out: Sequence[str] = ()) -> List[str]:
    """Returns a section for the first document of each register: source, reference, what models made of it.

    Args:
        test_set: the documents.
        shown: models beside source and reference.
        left_out: projects of which none is shown.
    """
    lines: List[str] = []
    ends, wanted = 0, {label for label in test_set.labels if label}
    assert test_set.references.source is not None
    for number, source in enumerate(test_set.references.source):
        begin, ends = ends, ends + len(source)
        labels = test_set.labels[begin:ends]
        marked = [place for place, label in enumerate(labels) if label]
        few = len(marked) < ENOUGH or labels[marked[0]] not in wanted
        if few or test_set.projects[number] in left_out:
            continue
        wanted.remove(labels[marked[0]])
        part = slice(marked[0], marked[0] + SHOWN)
        texts = [source, test_set.references.streams[0][number]]
        texts += [test_set.translations[name][number] for name in shown]
        rows = [[text.replace("|", "\\|") for text in row] for row in zip(*(text[part] for text in texts))]
        head = ["source", "reference", *(name[0] for name in shown)]
        lines += [f"{test_set.projects[number]}: {labels[marked[0]]}", "", table(head, rows, numbers=False), ""]
    return lines


def gaining_words(work: Path, names: Sequence["Name"], test_set: str) -> str:
    """Returns a table: a row a model of which P-CXMI was measured on a test set, "" if it was of none."""
    rows = []
    for model, seed in names:
        measured = ResultFiles(work / "models" / f"{model}-{seed}", test_set).named("cxmi.json")
        if measured.exists():
            words = [word for word in read_json(measured)["words"] if word["word"][:1] == WORD and word["word"] != WORD]
            cells = [f"{word['word'][1:]} {word['pcxmi']:.2f} ({word['count']})" for word in words[:GAINING]]
            rows.append([model, ", ".join(cells)])
    return table(["model", "words"], rows, numbers=False) if rows else ""


def figure(work: Path, names: Sequence["Name"], path: Path) -> None:
    """Draws the validation loss of the start and, from where they begin, of all models."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 4), layout="constrained")
    FigureCanvasAgg(drawn)
    whole, axis = drawn.subplots(1, 2, width_ratios=(1, 2))
    start = validation_curve(work / "models" / "start" / "train.log")
    whole.plot(*zip(*start), color="0.3")
    whole.set(title="start", xlabel="updates", ylabel="nll of a token, bits (validation)")
    begin = min(start, key=lambda point: point[1])[0]
    for number, model in enumerate(dict.fromkeys(name for name, _ in names)):
        style = {"color": COLOURS[number % len(COLOURS)], "linestyle": "-" if number < len(COLOURS) else "--"}
        for label, (name, seed) in zip((model, None, None), (one for one in names if one[0] == model)):
            points = validation_curve(work / "models" / f"{name}-{seed}" / "train.log")
            axis.plot(*zip(*((begin + update, loss) for update, loss in points)), label=label, **style)
    axis.set(title="begun from it", xlabel="updates, the start's included")
    axis.legend(frameon=False, ncols=2, fontsize="small")
    drawn.savefig(path, dpi=120)


def write(
    work: Path,
    results: Path,
    test_sets: Dict[str, "TestSet"],
    names: Sequence["Name"],
    rule: RegisterRule,
    beside: str,
    left_out: Sequence[str],
    facts: Sequence[str],
) -> None:
    """Writes the report; what was written under "What it says" by hand stays.

    Args:
        work: the recipe's output.
        results: folder to write into.
        test_sets: by name.
        names: models and seeds.
        rule: of register.
        beside: model whose documents are shown beside the sentence-level ones.
        left_out: projects of which no document is shown.
        facts: machine and command.
    """
    path = results / "manuals.md"
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    findings = known[known.index(FINDINGS) : known.index("## Side by side")] if FINDINGS in known else ""
    own = work / "table.md"
    lines = [*(own.read_text(encoding="utf-8").splitlines() if own.exists() else ["# Handbooks"]), ""]
    lines += ["![Validation loss](manuals.png)", ""]
    figure(work, names, results / "manuals.png")
    for name, test_set in test_sets.items():
        lines += [f"## {name}: register by distance", "", DISTANCES, "", by_distance(test_set, rule), ""]
    seed = min(seed for name, seed in names if name == beside)
    for name in test_sets:
        words = gaining_words(work, [one for one in names if one[1] == seed], name)
        told = WORDS.format(count=GAINING, seed=seed)
        lines += [f"## {name}: words that gain by context", "", told, "", words, ""] if words else []
    lines += [findings.rstrip("\n"), ""] if findings else []
    lines += [DOCUMENTS.format(enough=ENOUGH, seed=seed), ""]
    for name, test_set in test_sets.items():
        shown = [(BASELINE, seed), (beside, seed)]
        lines += [f"### {name}", "", *side_by_side(test_set, shown, left_out)]
    lines += ["\n\n".join(facts)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
