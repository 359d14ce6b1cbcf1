"""Where the right register comes from: how often models are right by project, beside what training shows of each.

    python -m benchmarks.experiments.manuals_small_budget --raw FOLDER [--updates N] [--seeds 1]
    python -m benchmarks.experiments.register_by_project --raw FOLDER [--updates N] [--seeds 1]

A project whose training lines nearly all show one register can be known by its topic; in one that has both, the
document itself has to tell. Writes benchmarks/results/register_by_project.md.
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from benchmarks.experiments.manuals import RECIPE, Name, TestSet, folder_of, models_of, test_set_of
from benchmarks.experiments.manuals_small_budget import add_trained_models, folder_of_seed
from benchmarks.lib.machine import RESULTS, call, machine, table, write
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import segments
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config

REGISTERS = ("du", "Sie")
ONE = 0.9  # share of a project's training lines that show a register, from which on it counts as having one
READING = f"""\
A cell: percent right of the marked lines whose translation shows a register, and how many these are. A project counts
as having one register where at least {ONE:.0%} of its training lines that show any show that one."""


@dataclass(frozen=True)
class Line:
    """A marked line.

    Attributes:
        project: of its document.
        needed: the register that is right.
        shown: by model and seed, the register that the translation shows, or None.
    """

    project: str
    needed: str
    shown: Dict[Name, Optional[str]]


def marked_lines(test_set: TestSet, rule: RegisterRule) -> Iterator[Line]:
    """Yields the marked lines of a test set with what every model shows in them."""
    documents = test_set.references.streams[0]
    projects = [name for name, document in zip(test_set.projects, documents) for _ in document]
    translations = {name: segments(stream) for name, stream in test_set.translations.items()}
    for place, (project, needed) in enumerate(zip(projects, test_set.labels)):
        if needed:
            yield Line(project, needed, {name: rule.register_of(one[place]) for name, one in translations.items()})


def registers_of_training(raw: Path, rule: RegisterRule) -> Dict[str, Counter[str]]:
    """Returns how many training lines of each project show each register."""
    lines = (raw / "train.de").read_text(encoding="utf-8").split("\n")
    found: Dict[str, Counter[str]] = {}
    for row in (raw / "train.documents.tsv").read_text(encoding="utf-8").splitlines():
        start, size, project = row.split("\t")
        shown = map(rule.register_of, lines[int(start) : int(start) + int(size)])
        found.setdefault(project, Counter()).update(one for one in shown if one)
    return found


def usual_register(of_training: Counter[str]) -> Optional[str]:
    """Returns the register that a project has in training; None: both, or none."""
    register, lines = max(of_training.items(), key=lambda one: one[1], default=("", 0))
    return register if lines and lines >= ONE * of_training.total() else None


def right(lines: Iterable[Line], name: Name) -> str:
    """Returns a cell: percent right of the lines that show a register, and their number."""
    shown = [line for line in lines if line.shown[name]]
    return (
        f"{100 * sum(line.shown[name] == line.needed for line in shown) / len(shown):.1f} ({len(shown)})"
        if shown
        else "–"
    )


def rows_of(lines: Sequence[Line], training: Dict[str, Counter[str]], names: List[Name]) -> Iterator[List[str]]:
    """Yields the rows of a table: the projects, most marked lines first, then groups of them."""
    usual = {project: usual_register(training.get(project, Counter())) for project in {line.project for line in lines}}

    def row(title: str, of_training: Sequence[str], chosen: List[Line]) -> List[str]:
        needed = Counter(line.needed for line in chosen)
        return [title, *of_training, *(str(needed[one]) for one in REGISTERS), *(right(chosen, name) for name in names)]

    for project, _ in sorted(Counter(line.project for line in lines).items(), key=lambda one: (-one[1], one[0])):
        of_training = training.get(project, Counter())
        yield row(
            project, [str(of_training[one]) for one in REGISTERS], [line for line in lines if line.project == project]
        )
    groups: Dict[str, Callable[[Line], bool]] = {
        "projects of one register": lambda line: usual[line.project] is not None,
        "their usual one": lambda line: usual[line.project] == line.needed,
        "the other one": lambda line: usual[line.project] not in (None, line.needed),
        "projects of both": lambda line: line.project in training and usual[line.project] is None,
        "projects not in training": lambda line: line.project not in training,
    }
    for title, belongs in groups.items():
        chosen = [line for line in lines if belongs(line)]
        if chosen:
            yield row(f"*{title}*", ["", ""], chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_trained_models(parser)
    parser.add_argument("--raw", type=Path, required=True, help="the recipe's --raw: training text, labels, projects")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    args = parser.parse_args()
    rule, report = RULES["de"](), ["# Register by project", ""]
    training = registers_of_training(args.raw, rule)
    for seed in args.seeds:
        work = folder_of_seed(args.work, args.updates, seed)
        for test_set, split in read_dataset_config(named_recipes()[RECIPE]).test_sets.items():
            read = test_set_of(work, split, test_set, args.raw, rule) if (work / "models").is_dir() else None
            if read is None or not read.translations:
                parser.error(
                    f"{work}: has no translations; train with manuals_small_budget, or give its --work and --updates"
                )
            names = [name for name in models_of(work) if name in read.translations]
            header = ["project", *(f"training: {one}" for one in REGISTERS), *REGISTERS, *map(folder_of, names)]
            rows = rows_of(list(marked_lines(read, rule)), training, names)
            report += [f"## {test_set}, seed {seed}", "", table(header, list(rows)), ""]
    write("register_by_project.md", "\n".join([*report, READING, "", f"`{call(args.raw)}`  ", machine()]), args.results)


if __name__ == "__main__":
    main()
