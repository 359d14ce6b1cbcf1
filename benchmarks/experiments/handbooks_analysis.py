"""Register of handbook translations by distance to the last sentence that shows it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from docnmt_fairseq.evaluation.metrics.register import labels_of
from docnmt_fairseq.evaluation.register_rules import RULES, RegisterRule
from docnmt_fairseq.evaluation.texts import References, read_references, read_text, segments
from docnmt_fairseq.recipes.recipe import Recipe
from docnmt_fairseq.recipes.results import ResultFiles, make_metrics, metric_scores

GROUPS = {"1": (1, 1), "2–3": (2, 3), "4–8": (4, 8), "9 and more": (9, 10**9)}  # distances in sentences
NONE_BEFORE = "none before"
CONSISTENCY = "register-consistency"


def distances_of(references: References, rule: RegisterRule) -> Iterator[int | None]:
    """Yields for every sentence the distance to the last one of its document with an unambiguous register."""
    for document in references.streams[0]:
        last = None
        for place, sentence in enumerate(document):
            yield None if last is None else place - last
            last = place if rule.register_of(sentence, unambiguous_only=True) else last


def right_by_distance(
    translations: Iterable[str], labels: Sequence[str | None], distances: Iterable[int | None], rule: RegisterRule
) -> dict[str, list[int]]:
    """Returns [right, cases] by group of distances, for labelled sentences whose translation shows a register."""
    counts = {group: [0, 0] for group in (*GROUPS, NONE_BEFORE)}
    for translation, needed, distance in zip(translations, labels, distances):
        shown = rule.register_of(translation) if needed else None
        if shown is not None:
            groups = (group for group, (low, high) in GROUPS.items() if distance and low <= distance <= high)
            count = counts[next(groups, NONE_BEFORE)]
            count[0] += shown == needed
            count[1] += 1
    return counts


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
        translations = segments(read_text(text, references, "score"))
        found[test_set] = right_by_distance(translations, labels, distances_of(references, rule), rule)
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
