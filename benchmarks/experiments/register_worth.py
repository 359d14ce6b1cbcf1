"""What the right register is worth in BLEU: how much of a gain can come from it at all.

    python -m benchmarks.experiments.manuals_small_budget --raw FOLDER [--updates N] [--seeds 1]
    python -m benchmarks.experiments.register_worth --raw FOLDER [--updates N] [--seeds 1]

In a sentence-level translation the lines whose register a document model alone has right are replaced by its
translations. Beside it as a control: those replaced whose register both have right, which says how much better the
document model's lines are by themselves. Writes benchmarks/results/register_worth.md.
"""

import argparse
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import sacrebleu

from benchmarks.experiments.manuals import RECIPE, Name, TestSet, folder_of, models_of, test_set_of
from benchmarks.experiments.manuals_small_budget import add_trained_models, folder_of_seed
from benchmarks.lib.machine import RESULTS, call, machine, table, write
from benchmarks.lib.recipe_figures import BASELINE
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import segments
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config

RIGHT, WRONG, NONE = "right", "wrong", "none"
HEADER = [
    "test set", "model", "marked lines", "register of sentence-level wrong", "right in the model alone",
    "BLEU sentence-level", "these lines replaced", "all wrong ones, in proportion", "lines right in both",
    "these replaced", "the model",
]  # fmt: skip
READING = """\
*In proportion*: the gain of the lines replaced, a line, times all lines whose register the sentence-level model shows
and has wrong: what a model could gain that had every register right and was no better otherwise. Lines that show no
register are left as they are."""


def registers_of(texts: List[str], labels: List[Optional[str]], rule: RegisterRule) -> List[Optional[str]]:
    """Returns for every marked line whether its translation has the register right, wrong, or shows none, else None."""
    found: List[Optional[str]] = []
    for text, needed in zip(texts, labels):
        shown = rule.register_of(text) if needed else None
        found.append(None if not needed else NONE if shown is None else RIGHT if shown == needed else WRONG)
    return found


def bleu(texts: List[str], test_set: TestSet) -> float:
    """Returns BLEU as sacrebleu has it by default."""
    return float(sacrebleu.corpus_bleu(texts, [segments(one) for one in test_set.references.streams]).score)


def worth(test_set: TestSet, baseline: Name, name: Name, rule: RegisterRule) -> Dict[str, float]:
    """Returns lines and BLEU by what was replaced in the baseline's translation."""
    before, after = (segments(test_set.translations[one]) for one in (baseline, name))
    was, now = (registers_of(texts, test_set.labels, rule) for texts in (before, after))
    pairs = list(zip(was, now))

    def replaced(pair: Tuple[str, str]) -> List[str]:
        return [new if both == pair else old for old, new, both in zip(before, after, pairs)]

    found = {
        "marked": len(pairs) - was.count(None),
        "wrong": was.count(WRONG),
        "repaired": pairs.count((WRONG, RIGHT)),
        "both": pairs.count((RIGHT, RIGHT)),
        "before": bleu(before, test_set),
        "with repaired": bleu(replaced((WRONG, RIGHT)), test_set),
        "with both": bleu(replaced((RIGHT, RIGHT)), test_set),
        "after": bleu(after, test_set),
    }
    gain = found["with repaired"] - found["before"]
    found["all"] = found["before"] + gain * found["wrong"] / max(1, found["repaired"])
    return found


def rows_of(read: TestSet, names: List[Name], test_set: str, rule: RegisterRule) -> List[List[str]]:
    """Returns the rows of the report on a test set: a model each that is translated beside a baseline of its seed."""
    rows = []
    for name in names:
        baseline = (BASELINE, name[1])
        if name != baseline and {name, baseline} <= set(read.translations):
            found = worth(read, baseline, name, rule)
            counts = [str(int(found[key])) for key in ("marked", "wrong", "repaired")]
            scores = [f"{found[key]:.2f}" for key in ("before", "with repaired", "all")]
            control = [str(int(found["both"])), f"{found['with both']:.2f}", f"{found['after']:.2f}"]
            rows.append([test_set, folder_of(name), *counts, *scores, *control])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_trained_models(parser)
    parser.add_argument("--raw", type=Path, required=True, help="the recipe's --raw: labels, projects of documents")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    args = parser.parse_args()
    works = [folder_of_seed(args.work, args.updates, seed) for seed in args.seeds]
    for work in works:
        if not (work / "models").is_dir():
            parser.error(
                f"{work}: has no models; train them with manuals_small_budget, or give its --work and --updates"
            )
    test_sets, rule = read_dataset_config(named_recipes()[RECIPE]).test_sets, RULES["de"]()
    rows = [
        row
        for test_set, split in test_sets.items()
        for work in works
        for row in rows_of(test_set_of(work, split, test_set, args.raw, rule), models_of(work), test_set, rule)
    ]
    if not rows:
        parser.error(
            f"{', '.join(map(str, works))}: no translations of {BASELINE} and another model; train both with "
            "manuals_small_budget"
        )
    lines = ["# What the right register is worth in BLEU", "", table(HEADER, rows), "", READING]
    write("register_worth.md", "\n".join([*lines, "", f"`{call(args.raw)}`  ", machine()]), args.results)


if __name__ == "__main__":
    main()
