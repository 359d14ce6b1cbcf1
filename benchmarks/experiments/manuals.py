"""What the recipe of the handbooks found, told: learning curves, register by distance, documents side by side.

    docnmt recipe en_de_manuals --raw FOLDER --seeds "1 2 3"
    python -m benchmarks.experiments.manuals --raw FOLDER

Reads what the recipe wrote, whatever of it is there. Writes benchmarks/results/manuals.md and manuals.png.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from benchmarks.experiments import manuals_report as report
from benchmarks.lib.machine import RESULTS, ROOT, call, machine
from docnmt_fairseq.evaluation.metrics.register import labels_of
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import References, Stream, read_references, read_text, segments
from docnmt_fairseq.recipes.dataset_file import named_recipes, read_dataset_config

RECIPE = "en_de_manuals"
Name = Tuple[str, int]  # a model and its seed
BOOKS = ["books", "jsinfo", "3b1b-reviewed"]  # projects whose texts are free to read, not to pass on
GROUPS = ((1, 1), (2, 3), (4, 8), (9, None))  # sentences back


@dataclass(frozen=True)
class TestSet:
    """A test set and what models made of it.

    Attributes:
        references: with their source.
        labels: [sentences] the register that each needs, or None.
        distances: [sentences] how far back the last one stands that shows a register for sure; None: none does.
        translations: by model and seed.
        projects: of the documents.
    """

    references: References
    labels: List[Optional[str]]
    distances: List[Optional[int]]
    translations: Dict[Name, Stream]
    projects: List[str]

    def right_by_distance(self, name: Name, rule: RegisterRule) -> Dict[str, Tuple[int, int]]:
        """Returns right and shown by group of distances, of the marked sentences whose translation shows a register."""
        counts = {title_of(low, high): [0, 0] for low, high in (*GROUPS, (None, None))}
        of_all = zip(segments(self.translations[name]), self.labels, self.distances)
        for translation, needed, distance in of_all:
            shown = rule.register_of(translation) if needed else None
            if shown is not None:
                count = counts[group_of(distance)]
                count[0] += shown == needed
                count[1] += 1
        return {group: (right, cases) for group, (right, cases) in counts.items()}


def title_of(low: Optional[int], high: Optional[int]) -> str:
    """Returns what a group of distances is called."""
    if low is None:
        return "none before"
    return f"{low}" if low == high else f"{low}–{high or ''}".rstrip("–") + ("" if high else " and more")


def group_of(distance: Optional[int]) -> str:
    """Returns the title of the group that a distance is in."""
    if distance is None:
        return title_of(None, None)
    return next(title_of(low, high) for low, high in GROUPS if low <= distance and (high is None or distance <= high))


def distances_back(references: References, rule: RegisterRule) -> Iterator[Optional[int]]:
    """Yields for every sentence how far back in its document the last one is that shows a register for sure."""
    for document in references.streams[0]:
        last = None
        for place, sentence in enumerate(document):
            yield None if last is None else place - last
            last = place if rule.register_of(sentence, unambiguous_only=True) else last


def test_set_of(work: Path, split: str, name: str, raw: Path, rule: RegisterRule) -> TestSet:
    """Returns a test set with the translations that there are.

    Args:
        work: the recipe's output.
        split: what ``docnmt prepare`` calls it.
        name: what the recipe calls it.
        raw: with its labels and its documents' projects.
        rule: of register.
    """
    text = [work / "data" / "text" / f"{split}.{language}" for language in ("de", "en")]
    references = read_references(text[:1], text[1])
    files = {one: work / "models" / folder_of(one) / f"{name}.txt" for one in models_of(work)}
    rows = (raw / f"{name}.documents.tsv").read_text(encoding="utf-8").splitlines()
    return TestSet(
        references,
        labels_of(references, rule, raw / f"{name}.register.tsv"),
        list(distances_back(references, rule)),
        {one: read_text(path, references, "score") for one, path in files.items() if path.exists()},
        [row.split("\t")[2] for row in rows],
    )


def models_of(work: Path) -> List[Name]:
    """Returns models and seeds that have begun, in the recipe's order, those that it has not at the end."""
    order = read_dataset_config(named_recipes()[RECIPE]).models
    found = [folder.name.rsplit("-", 1) for folder in (work / "models").iterdir() if "-" in folder.name]
    places = {name: place for place, name in enumerate(order)}
    return sorted(((name, int(seed)) for name, seed in found), key=lambda one: (places.get(one[0], len(order)), *one))


def folder_of(name: Name) -> str:
    """Returns what the folder of a model and seed is called."""
    return f"{name[0]}-{name[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "work" / "en-de-manuals", help="the recipe's output")
    parser.add_argument("--raw", type=Path, required=True, help="the recipe's --raw: labels, projects of documents")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the report")
    parser.add_argument("--beside", default="conditional", help="shown beside sentence-level (default: conditional)")
    parser.add_argument(
        "--leave-out", nargs="*", default=BOOKS, help=f"show none of these (default: {' '.join(BOOKS)})"
    )
    args = parser.parse_args()
    rule, config = RULES["de"](), read_dataset_config(named_recipes()[RECIPE])
    test_sets = {name: test_set_of(args.work, split, name, args.raw, rule) for name, split in config.test_sets.items()}
    facts = [machine(), f"`{call(args.raw)}`"]
    report.write(args.work, args.results, test_sets, models_of(args.work), rule, args.beside, args.leave_out, facts)


if __name__ == "__main__":
    main()
