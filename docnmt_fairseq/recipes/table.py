"""The table of a recipe: each model's scores over its seeds, beside what was published."""

from statistics import mean, stdev
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.recipes.dataset import DatasetConfig, Published
from docnmt_fairseq.recipes.scoring import Scores

Seeds = Mapping[Optional[int], Scores]  # None: nothing was trained
COLUMNS = {"bleu_tokens": "BLEU over tokens", "hter": "HTER over tokens↓", "bleu": "BLEU", "chrf": "chrF"}


def scores_table(dataset: DatasetConfig, scores: Mapping[str, Seeds], counts: Dict[str, int], smoke: bool) -> str:
    """Returns the table as Markdown, with what the numbers are.

    Args:
        dataset: of the data set.
        scores: by model and seed.
        counts: sentences by split, as prepared.
        smoke: whether nobody should believe the numbers.
    """
    published = dataset.published or Published("")
    runs = [run for seeds in scores.values() for run in seeds.values()]
    columns = {name: title for name, title in COLUMNS.items() if name in runs[0]}
    beside = [(COLUMNS[name], values) for name, values in _figures(published) if values]
    header = ["model", *columns.values(), "seeds", *(f"published, {title}" for title, _ in beside)]
    rows = []
    for model, seeds in scores.items():
        values = [_spread([run[name] for run in seeds.values()]) for name in columns]
        numbers = ", ".join("–" if seed is None else str(seed) for seed in seeds)
        rows.append([model, *values, numbers, *_published(model, beside)])
    for model in dict.fromkeys(model for _, values in beside for model in values if model not in scores):
        rows.append([model, *["–"] * (len(columns) + 1), *_published(model, beside)])
    signatures = sorted({str(run[name]) for run in runs for name in run if name.endswith("signature")})
    lines = [f"# {dataset.title}", ""]
    if smoke:
        lines += ["**A smoke run: a few documents, tiny models. The scores mean nothing.**", ""]
    lines += [markdown([header, *rows]), ""]
    lines += [f"Over {runs[0]['sentences']:,} test sentences; several seeds: mean ± standard deviation. Signatures: "
              f"{'; '.join(f'`{one}`' for one in signatures)}.", ""]  # fmt: skip
    if published.source:
        lines += [f"Published: {published.source}.", ""]
    lines += _sentences(published.sentences, counts)
    return "\n".join(lines)


def _figures(published: Published) -> List[Tuple[str, Dict[str, float]]]:
    """Returns what was published by column."""
    return [("bleu_tokens", published.bleu), ("hter", published.hter)]


def _sentences(published: Dict[str, int], counts: Dict[str, int]) -> List[str]:
    """Returns how many sentences the splits have, and should have."""
    found = []
    for split, count in counts.items():
        other = published.get(split, count)
        found.append(f"{split} {count:,}" + (f" (published: {other:,})" if other != count else ""))
    return [f"Sentences: {', '.join(found)}."]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _published(model: str, beside: Sequence[Tuple[str, Dict[str, float]]]) -> List[str]:
    return [f"{values[model]:.2f}" if model in values else "–" for _, values in beside]
