"""The table of a recipe: each model's scores over its seeds on each test set, beside what was published."""

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.recipes.columns import NOTHING, Column, metric_columns, score_column
from docnmt_fairseq.recipes.context_table import context_lines
from docnmt_fairseq.recipes.dataset import TEST, DatasetConfig, Published
from docnmt_fairseq.recipes.scoring import Scores

Seeds = Mapping[Optional[int], Scores]  # None: nothing was trained
CHANGED = "†"
COLUMNS = {"bleu_tokens": "BLEU over tokens", "hter": "HTER over tokens↓", "bleu": "BLEU", "chrf": "chrF"}


def scores_table(
    dataset: DatasetConfig,
    scores: Mapping[str, Mapping[str, Seeds]],
    counts: Mapping[str, int],
    smoke: bool,
    baseline: Optional[str] = None,
    changes: Sequence[str] = (),
) -> str:
    """The table as Markdown, a section a test set if there are several, with what the numbers are.

    Args:
        dataset: of the data set.
        scores: by test set, model and seed.
        counts: sentences by split, as prepared.
        smoke: whether nobody should believe the numbers.
        baseline: the model that others were tested against; None: there were no tests.
        changes: options by which models are no longer the recipe's, nor those that figures were published of.
    """
    published = dataset.published or Published("")
    lines = [f"# {dataset.title}", ""]
    if smoke:
        lines += ["**A smoke run: a few documents, tiny models. The scores mean nothing.**", ""]
    for test_set, models in scores.items():
        lines += [f"## {test_set}", ""] if len(scores) > 1 else []
        figures = published if test_set == TEST else Published("")
        lines += _section(dataset, models, figures, baseline, CHANGED if changes else "")
    if published.source:
        lines += [f"Published: {published.source}.", ""]
        if changes:
            lines += [f"{CHANGED} Of another model than this run's, which was changed by `{' '.join(changes)}`.", ""]
    lines += _sentences(published.sentences, counts)
    return "\n".join(lines)


def _section(
    dataset: DatasetConfig, scores: Mapping[str, Seeds], published: Published, baseline: Optional[str], mark: str
) -> List[str]:
    """One test set: its table, and what is said below; ``mark`` stands by published figures of other models."""
    runs = [run for seeds in scores.values() for run in seeds.values()]
    columns = _columns(dataset, runs[0])
    tests = [run["significance"] for run in runs if "significance" in run]
    beside = [(COLUMNS[name], values) for name, values in _figures(published) if values]
    header = ["model", *(column.title for column in columns), *([f"p, BLEU against {baseline}"] if tests else [])]
    header += ["seeds", *(f"published, {title}" for title, _ in beside)]
    rows = []
    for model, seeds in scores.items():
        cells = [column.cell(seeds.values()) for column in columns]
        cells += [_p_values(seeds)] if tests else []
        numbers = ", ".join(NOTHING if seed is None else str(seed) for seed in seeds)
        changed = "" if None in seeds else mark  # what nobody trained is what was published
        of_paper = [cell if cell == NOTHING else cell + changed for cell in _published(model, beside)]
        rows.append([model, *cells, numbers, *of_paper])
    others = dict.fromkeys(model for _, values in beside for model in values if model not in scores)
    rows += [[model, *[NOTHING] * (len(header) - 1 - len(beside)), *_published(model, beside)] for model in others]
    lines = [markdown([header, *rows]), ""]
    lines += [f"Over {runs[0]['sentences']:,} test sentences; several seeds: mean ± standard deviation. Signatures: "
              f"{'; '.join(f'`{one}`' for one in _signatures(runs))}.", ""]  # fmt: skip
    if tests:
        drawn = f"{tests[0]['samples']:,} resamples of {tests[0]['documents']:,} whole documents"
        lines += [f"p: paired bootstrap, {drawn}, each seed against the same seed of {baseline}; not corrected for the "
                  f"number of comparisons: `{tests[0]['signature']}`.", ""]  # fmt: skip
    return lines + context_lines(dataset.scores.metrics, {name: list(seeds.values()) for name, seeds in scores.items()})


def _columns(dataset: DatasetConfig, run: Scores) -> List[Column]:
    """Those of every recipe that the scores have, and one a further metric."""
    of_every_recipe = [score_column(name, title) for name, title in COLUMNS.items() if name in run]
    return [*of_every_recipe, *metric_columns(dataset.scores.metrics)]


def _p_values(seeds: Seeds) -> str:
    """Seed by seed: they are no sample to take the mean of."""
    tests = [run.get("significance") for run in seeds.values()]
    return ", ".join(NOTHING if test is None else f"{test['p_value']:.3f}" for test in tests)


def _signatures(runs: Sequence[Scores]) -> List[str]:
    """All signatures of all scores, each once."""
    own = {str(run[name]) for run in runs for name in run if name.endswith("signature")}
    further = {one["signature"] for run in runs for one in run.get("metrics", {}).values() if one["signature"]}
    return sorted(own) + sorted(further)


def _figures(published: Published) -> List[Tuple[str, Dict[str, float]]]:
    """What was published by column."""
    return [("bleu_tokens", published.bleu), ("hter", published.hter)]


def _sentences(published: Dict[str, int], counts: Mapping[str, int]) -> List[str]:
    """How many sentences the splits have, and should have."""
    found = []
    for split, count in counts.items():
        other = published.get(split, count)
        found.append(f"{split} {count:,}" + (f" (published: {other:,})" if other != count else ""))
    return [f"Sentences: {', '.join(found)}."]


def _published(model: str, beside: Sequence[Tuple[str, Dict[str, float]]]) -> List[str]:
    return [f"{values[model]:.2f}" if model in values else NOTHING for _, values in beside]
