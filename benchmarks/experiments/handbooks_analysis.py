"""Register of handbook translations: by distance to the last sentence that shows it, and by project."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from docnmt_fairseq.evaluation.metrics.register import labels_of
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import References, Stream, read_references, read_text, segments
from docnmt_fairseq.recipes.recipe import Recipe
from docnmt_fairseq.recipes.results import ResultFiles, make_metrics, metric_scores

Name = tuple[str, int]  # model and seed
GROUPS = {"1": (1, 1), "2–3": (2, 3), "4–8": (4, 8), "9 and more": (9, 10**9)}  # distances in sentences
NONE_BEFORE = "none before"
CONSISTENCY = "register-consistency"


@dataclass(frozen=True)
class TestSet:
    """Test set with translations.

    Attributes:
        references: references with source.
        labels: [sentences] required register or None.
        distances: [sentences] distance to the last sentence with an unambiguous register, None without one.
        translations: by model and seed.
        projects: project of each document.
    """

    references: References
    labels: list[str | None]
    distances: list[int | None]
    translations: dict[Name, Stream]
    projects: list[str]

    def right_by_distance(self, name: Name, rule: RegisterRule) -> dict[str, list[int]]:
        """Returns [right, cases] by group of distances, for labelled sentences whose translation shows a register."""
        counts = {group: [0, 0] for group in (*GROUPS, NONE_BEFORE)}
        for translation, needed, distance in zip(segments(self.translations[name]), self.labels, self.distances):
            shown = rule.register_of(translation) if needed else None
            if shown is not None:
                count = counts[group_of(distance)]
                count[0] += shown == needed
                count[1] += 1
        return counts


def group_of(distance: int | None) -> str:
    """Returns the group of a distance."""
    if distance is None:
        return NONE_BEFORE
    return next(group for group, (low, high) in GROUPS.items() if low <= distance <= high)


def distances_of(references: References, rule: RegisterRule) -> Iterator[int | None]:
    """Yields for every sentence the distance to the last one of its document with an unambiguous register."""
    for document in references.streams[0]:
        last = None
        for place, sentence in enumerate(document):
            yield None if last is None else place - last
            last = place if rule.register_of(sentence, unambiguous_only=True) else last


def read_test_set(work: Path, split: str, name: str, raw: Path, rule: RegisterRule) -> TestSet:
    """Returns a test set with all existing translations.

    Args:
        work: output of the recipe.
        split: name of the split in the prepared data.
        name: name of the test set in the recipe.
        raw: folder with labels and projects.
        rule: register rule.
    """
    text = [work / "data" / "text" / f"{split}.{language}" for language in ("de", "en")]
    references = read_references(text[:1], text[1])
    folders = [folder for folder in sorted((work / "models").iterdir()) if (folder / f"{name}.txt").exists()]
    models = {(folder.name.rpartition("-")[0], int(folder.name.rpartition("-")[2])): folder for folder in folders}
    rows = (raw / f"{name}.documents.tsv").read_text(encoding="utf-8").splitlines()
    return TestSet(
        references,
        labels_of(references, rule, raw / f"{name}.register.tsv"),
        list(distances_of(references, rule)),
        {one: read_text(folder / f"{name}.txt", references, "score") for one, folder in models.items()},
        [row.split("\t")[2] for row in rows],
    )


def distances_of_model(recipe: Recipe, name: str, seed: int) -> dict[str, dict]:
    """Returns ``{"distances": {test set: {group: [right, cases]}}}`` of a model of the recipe."""
    dataset, paths, found = recipe.dataset, recipe.fetch(), {}
    rule = RULES[dataset.target_lang]()
    for test_set, split in dataset.test_sets.items():
        sides = (dataset.source_lang, dataset.target_lang)
        source, target = (recipe.output / "data" / "text" / f"{split}.{side}" for side in sides)
        references = read_references([target], source)
        labels = labels_of(references, rule, paths[dataset.scores.options["register_labels"][test_set]])
        text = ResultFiles(recipe.output / "models" / f"{name}-{seed}", test_set).text
        translations = {(name, seed): read_text(text, references, "score")}
        read = TestSet(references, labels, list(distances_of(references, rule)), translations, [])
        found[test_set] = read.right_by_distance((name, seed), rule)
    return {"distances": found}


def consistency_of_references(recipe: Recipe) -> dict[str, float | None]:
    """Returns the share of reference documents with one register only, in %, by test set."""
    scores, paths, found = recipe.dataset.scores, recipe.fetch(), {}
    for test_set, split in recipe.dataset.test_sets.items():
        references = read_references([recipe.output / "data" / "text" / f"{split}.{recipe.dataset.target_lang}"])
        metrics = make_metrics(
            replace(scores, metrics=[CONSISTENCY]), test_set, references, paths, recipe.options.smoke
        )
        found[test_set] = metric_scores(metrics, references.streams[0], paths)[CONSISTENCY]["score"]
    return found
