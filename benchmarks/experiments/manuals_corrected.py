"""What corrected translations before are worth: each line after the references of those before, as after a translator.

    python -m benchmarks.experiments.manuals_small_budget --raw FOLDER [--updates N] [--seeds 1] \\
        --models conditional-target
    python -m benchmarks.experiments.manuals_corrected --raw FOLDER [--updates N] [--seed 1]

Models that look back at translations translate the test sets by docnmt translate --target-context: lines see the
references of those before in place of the model's translations, and as a control those of another document. Of --work
models and data are read.
Writes benchmarks/results/manuals_corrected.md and .json, which keeps what earlier calls found.
"""

import argparse
from pathlib import Path
from typing import Dict, List, Sequence

from benchmarks.experiments.manuals_small_budget import NAME, UPDATES, WAYS, dataset_of, folder_of_seed, way_of
from benchmarks.lib.machine import RESULTS, ROOT, table
from benchmarks.lib.recipe_figures import made_with, remember_call
from benchmarks.lib.store import Store
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.evaluation.texts import References, Stream, read_references, read_text, segments
from docnmt_fairseq.recipes.machines import Machine
from docnmt_fairseq.recipes.models import SEARCH
from docnmt_fairseq.recipes.processes import alone_in
from docnmt_fairseq.recipes.result_files import ResultFiles
from docnmt_fairseq.recipes.run import Options, Recipe
from docnmt_fairseq.recipes.scoring import compared, metric_scores, metrics_of, text_scores
from docnmt_fairseq.recipes.training import BEST
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.translator import DocumentTranslator

NAME_OF_RESULTS, MODEL = "manuals_corrected", "conditional-target"
OWN, REFERENCES, FALSE = "the model's own", "the references", "references of other documents"
METRICS = ("register", "register-of-all", "register-consistency")
HEADER = [
    "test set", "model", "updates", "seed", "translations before", "BLEU", "beside its own", "95 %", "p", "register",
    "of all", "register consistency",
]  # fmt: skip
READING = """\
*The references*: every line is translated by the model itself, after the references of the lines before; so are
documents that a translator corrects from their beginning. *References of other documents*: after those of as many lines
elsewhere in the test set, in their order. *Beside its own*: the same model after its own translations; p and interval
by a paired bootstrap over whole documents."""


def beside_the_text(references: References, sentences: Sequence[str], lines: int) -> List[str]:
    """Returns a line for each line of a text, empty where no sentence of the references stands.

    Args:
        references: that say where sentences stand.
        sentences: in their order.
        lines: of the text.
    """
    found = [""] * lines
    for number, sentence in zip((line for document in references.lines for line in document), sentences):
        found[number - 1] = sentence
    return found


def elsewhere(sentences: Sequence[str]) -> List[str]:
    """Returns the sentences half a test set further on: those that follow each other still do."""
    half = len(sentences) // 2
    return [*sentences[half:], *sentences[:half]]


def translations_of(translator: DocumentTranslator, source: Path, references: References) -> Dict[str, Stream]:
    """Returns translations of a test set by what stands before each line.

    Args:
        translator: of a model that looks back.
        source: the text.
        references: of it.
    """
    text, own = list(read_lines(source)), segments(references.streams[0])
    found = {}
    for name, seen in ((REFERENCES, own), (FALSE, elsewhere(own))):
        lines = translator.translate_lines([text], target_context=[beside_the_text(references, seen, len(text))])[0]
        found[name] = [[lines[number - 1].text for number in document] for document in references.lines]
    return found


def rows_of(recipe: Recipe, name: str, seed: int) -> List[List[str]]:
    """Returns the rows of the report on a model, three of each test set, but for which model it is."""
    folder, data = recipe.output / "models" / f"{name}-{seed}", recipe.output / "data"
    languages, paths = recipe.dataset, recipe.splits.get(recipe.options.raw)
    translator = DocumentTranslator.from_checkpoint(
        folder / BEST,
        data=data,
        view=recipe.dataset.view,
        search=SearchOptions(**SEARCH),
        cpu=recipe.options.machine.cpu,
    )
    rows = []
    for test_set, split in recipe.dataset.test_sets.items():
        source, target = (data / "text" / f"{split}.{side}" for side in (languages.source_lang, languages.target_lang))
        references = read_references([target], source)
        own = read_text(ResultFiles(folder, test_set).text, references, "score")
        metrics = metrics_of(recipe.dataset.scores, test_set, references, paths, recipe.options.smoke)
        for before, translation in {OWN: own, **translations_of(translator, source, references)}.items():
            scores = metric_scores(metrics, translation, paths)
            bleu = text_scores(segments(translation), segments(references.streams[0]), "none")["bleu"]
            found = compared(references, own, translation, "none")
            low, high = found["difference_interval"]
            beside = [f"{found['difference']:+.2f}", f"{low:+.2f} to {high:+.2f}", f"{found['p_value']:.3f}"]
            shown = [scores[metric]["score"] for metric in METRICS]
            rows.append(
                [
                    test_set, before, f"{bleu:.2f}", *(["–"] * 3 if before == OWN else beside),
                    *("–" if one is None else f"{one:.1f}" for one in shown),
                ]
            )  # fmt: skip
    return rows


def report(stored: Store) -> str:
    """Returns the report on all models so far, those of a test set beside each other."""
    runs = list(stored.runs.values())
    rows = [
        [test_set, run["model"], str(run["updates"]), str(run["seed"]), *cells]
        for wanted in dict.fromkeys(row[0] for run in runs for row in run["rows"])
        for run in runs
        for test_set, *cells in run["rows"]
        if test_set == wanted
    ]
    lines = ["# What corrected translations before are worth", "", table(HEADER, rows), "", READING, ""]
    return "\n".join([*lines, *made_with(stored)]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / NAME, help="folder with its models")
    parser.add_argument("--updates", type=int, default=UPDATES, help=f"of its models (default: {UPDATES})")
    parser.add_argument("--seed", type=int, default=1, help="of its models")
    parser.add_argument("--models", nargs="+", default=[MODEL], help=f"that look back (default: {MODEL})")
    parser.add_argument("--raw", type=Path, help="the recipe's --raw: labels")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--smoke", action="store_true", help="made-up text, tiny models: figures mean nothing")
    args = parser.parse_args()
    output = folder_of_seed(args.work, args.updates, args.seed)
    missing = [name for name in args.models if not (output / "models" / f"{name}-{args.seed}" / "test.txt").exists()]
    if missing:
        parser.error(
            f"{output}: has no translations of {', '.join(missing)}; train them with manuals_small_budget, or give its "
            "--work and --updates"
        )
    options = Options(output, args.raw, tuple(args.models), (args.seed,), Machine(cpu=True), smoke=args.smoke)
    recipe = Recipe(dataset_of(args.seed, args.updates), options, {way: way_of(way) for way in WAYS})
    for name in args.models:
        with alone_in(output):
            rows = rows_of(recipe, name, args.seed)
        stored = Store(args.results / f"{NAME_OF_RESULTS}.json")
        remember_call(stored, args.raw)
        run = {"model": name, "updates": args.updates, "seed": args.seed, "rows": rows}
        stored.add(f"{name}-{args.updates}-{args.seed}", run)
        (args.results / f"{NAME_OF_RESULTS}.md").write_text(report(stored), encoding="utf-8")


if __name__ == "__main__":
    main()
