"""Result table of a recipe: scores of each model over its seeds, published figures, and probes of context use."""

from dataclasses import dataclass
from statistics import mean, stdev
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.recipes.dataset import CONTEXTS, TEST, DatasetConfig, Published
from docnmt_fairseq.recipes.results import Scores

Seeds = Mapping[Optional[int], Scores]  # None: nothing was trained
NOTHING = "–"
CHANGED = "†"
COLUMNS = {"bleu_tokens": "BLEU over tokens", "hter": "HTER over tokens↓", "bleu": "BLEU", "chrf": "chrF"}
TRUE = "true"
CXMI = {"true": "true", "shuffled": "shuffled", "random-document": "random document"}  # without context it is 0
SEPARATOR = " / "


@dataclass(frozen=True)
class Column:
    """Column: its title, and its value in the scores of a run, None if it has none."""

    title: str
    value: Callable[[Scores], Optional[float]]
    decimals: int = 2

    def cell(self, runs: Iterable[Scores]) -> str:
        """Returns the mean over the seeds of a model, with the standard deviation of several."""
        values = [value for value in map(self.value, runs) if value is not None]
        if not values:
            return NOTHING
        spread = f" ± {stdev(values):.{self.decimals}f}" if len(values) > 1 else ""
        return f"{mean(values):.{self.decimals}f}{spread}"


def score_column(name: str) -> Column:
    """Returns the column of a score that every recipe has."""
    return Column(COLUMNS[name], lambda run: run.get(name))


def metric_columns(metrics: Sequence[str]) -> List[Column]:
    """Returns the columns of extra metrics and of their categories."""

    def value_of(name: str) -> Callable[[Scores], Optional[float]]:
        return lambda run: run.get("metrics", {}).get(name, {}).get("score")

    def part_of(name: str, part: str) -> Callable[[Scores], Optional[float]]:
        return lambda run: run.get("metrics", {}).get(name, {}).get("parts", {}).get(part)

    columns = []
    for name in metrics:
        metric = METRICS[name]
        columns.append(Column(metric.title + "↓" * metric.lower_is_better, value_of(name), metric.decimals))
        columns += [Column(part, part_of(name, part), metric.decimals) for part in metric.parts]
    return columns


def scores_table(
    dataset: DatasetConfig,
    scores: Mapping[str, Mapping[str, Seeds]],
    counts: Mapping[str, int],
    smoke: bool,
    baseline: Optional[str] = None,
    changes: Sequence[str] = (),
) -> str:
    """Returns the table as Markdown, with one section per test set if there are several.

    Args:
        dataset: configuration.
        scores: scores by test set, model and seed.
        counts: prepared sentences by split.
        smoke: add a note that the scores are meaningless.
        baseline: model of the significance tests; None: no tests.
        changes: options that change the models of the recipe, so that published figures are for other models.
    """
    published = dataset.published or Published("")
    lines = [f"# {dataset.title}", ""]
    if smoke:
        lines += ["**Smoke run: a few documents and tiny models. The scores are meaningless.**", ""]
    for test_set, models in scores.items():
        lines += [f"## {test_set}", ""] if len(scores) > 1 else []
        figures = published if test_set == TEST else Published("")
        lines += _section(dataset, test_set, models, figures, baseline, CHANGED if changes else "")
    if published.source:
        lines += [f"Published: {published.source}.", ""]
        if changes:
            lines += [f"{CHANGED} For another model than in this run, which was changed by `{' '.join(changes)}`.", ""]
    sizes = [f"{split} {count:,}{_other_size(published, split, count)}" for split, count in counts.items()]
    return "\n".join([*lines, f"Sentences: {', '.join(sizes)}."])


def _other_size(published: Published, split: str, count: int) -> str:
    other = published.sentences.get(split, count)
    return f" (published: {other:,})" if other != count else ""


def _section(
    dataset: DatasetConfig,
    test_set: str,
    scores: Mapping[str, Seeds],
    published: Published,
    baseline: Optional[str],
    mark: str,
) -> List[str]:
    """Table and notes of a test set; ``mark`` follows published figures of changed models."""
    runs = [run for seeds in scores.values() for run in seeds.values()]
    metrics = dataset.scores.metrics
    columns = [*(score_column(name) for name in COLUMNS if name in runs[0]), *metric_columns(metrics)]
    tests = [run["significance"] for run in runs if "significance" in run]
    figures = [(COLUMNS[name], values) for name, values in _published(published) if values]
    header = ["model", *(column.title for column in columns), *([f"p, BLEU against {baseline}"] if tests else [])]
    header += ["seeds", *(f"published, {title}" for title, _ in figures)]
    rows = []
    for model, seeds in scores.items():
        cells = [column.cell(seeds.values()) for column in columns]
        cells += [_p_values(seeds)] if tests else []
        cells.append(", ".join(NOTHING if seed is None else str(seed) for seed in seeds))
        changed = "" if None in seeds else mark
        rows.append([model, *cells, *(f"{values[model]:.2f}{changed}" if model in values else NOTHING
                                      for _, values in figures)])  # fmt: skip
    for model in dict.fromkeys(model for _, values in figures for model in values if model not in scores):
        empty = [NOTHING] * (len(header) - 1 - len(figures))
        rows.append([model, *empty, *(f"{values[model]:.2f}" if model in values else NOTHING for _, values in figures)])
    lines = [markdown([header, *rows]), ""]
    further = len(dataset.references(test_set))
    sentences = f"{runs[0]['sentences']:,} test sentences{f' with {1 + further} references' if further else ''}"
    lines += [f"{sentences}; several seeds: mean ± standard deviation. Signatures: "
              f"{'; '.join(f'`{signature}`' for signature in _signatures(runs))}.", ""]  # fmt: skip
    if tests:
        samples = f"{tests[0]['samples']:,} resamples of {tests[0]['documents']:,} whole documents"
        lines += [f"p: paired bootstrap, {samples}, each seed against the same seed of {baseline}, without correction "
                  f"for multiple comparisons: `{tests[0]['signature']}`.", ""]  # fmt: skip
    return lines + context_lines(metrics, {name: list(seeds.values()) for name, seeds in scores.items()})


def _p_values(seeds: Seeds) -> str:
    """p-value of each seed; their mean would be meaningless."""
    tests = [run.get("significance") for run in seeds.values()]
    return ", ".join(NOTHING if test is None else f"{test['p_value']:.3f}" for test in tests)


def _signatures(runs: Sequence[Scores]) -> List[str]:
    own = {str(run[name]) for run in runs for name in run if name.endswith("signature")}
    extra = {one["signature"] for run in runs for one in run.get("metrics", {}).values() if one["signature"]}
    return sorted(own) + sorted(extra)


def _published(published: Published) -> List[Tuple[str, Dict[str, float]]]:
    return [("bleu_tokens", published.bleu), ("hter", published.hter)]


def context_lines(metrics: Sequence[str], scores: Mapping[str, Sequence[Scores]]) -> List[str]:
    """Returns the table of context use as Markdown lines; empty without probes.

    Args:
        metrics: names of extra metrics.
        scores: scores of each seed, by model.
    """
    probed = {model: runs for model, runs in scores.items() if any("contexts" in run for run in runs)}
    every = [run for runs in probed.values() for run in runs]
    contexts = [context for context in CONTEXTS if any(context in run["contexts"] for run in every)]
    sampled = next((run["cxmi_sentences"] for run in every if "cxmi" in run), None)
    if not contexts and sampled is None:
        return []
    columns = [score_column("bleu"), *metric_columns(metrics)] if contexts else []
    header = ["model", *(f"{column.title}: {SEPARATOR.join([TRUE, *contexts])}" for column in columns)]
    header += [f"CXMI: {SEPARATOR.join(CXMI.values())}"] if sampled is not None else []
    rows = []
    for model, runs in probed.items():
        by_context = [runs, *([run["contexts"].get(context, {}) for run in runs] for context in contexts)]
        cells = [SEPARATOR.join(map(column.cell, by_context)) for column in columns]
        if sampled is not None:
            cells.append(SEPARATOR.join(Column("", _cxmi(context), 3).cell(runs) for context in CXMI))
        rows.append([model, *cells])
    notes = {
        "shuffled": "Shuffled: translated among sentences of other documents.",
        "none": "None: every sentence translated by itself.",
    }
    legend = [notes[context] for context in contexts]
    if sampled is not None:
        legend.append(
            f"CXMI: increase of the log-probability of a reference due to context, in nats, mean of {sampled:,} "
            "sentences; random document: the sentence is placed in another document."
        )
    legend.append("A gain that comes from context appears with the true context only.")
    return ["### Context use", "", markdown([header, *rows]), "", " ".join(legend), ""]


def _cxmi(context: str) -> Callable[[Scores], Optional[float]]:
    return lambda run: run.get("cxmi", {}).get(context)
