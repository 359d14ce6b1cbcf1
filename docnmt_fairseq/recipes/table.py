"""The table of a recipe: each model's scores over its seeds, beside what was published."""

from statistics import mean, stdev
from typing import Dict, List, Optional, Sequence

from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.recipes.facts import Facts

Scores = Dict[str, object]  # of one model and seed: bleu_tokens, bleu, chrf, sentences, signatures


def scores_table(facts: Facts, scores: Dict[str, Dict[int, Scores]], counts: Dict[str, int], smoke: bool) -> str:
    """Returns the table as Markdown, with what the numbers are.

    Args:
        facts: of the data set.
        scores: by model and seed.
        counts: sentences by split, as prepared.
        smoke: whether nobody should believe the numbers.
    """
    published = facts.published
    header = ["model", "BLEU over tokens", "BLEU", "chrF", "seeds"]
    header += ["published, BLEU over tokens"] if published and published.bleu else []
    rows = []
    for model, seeds in scores.items():
        values = [_spread([run[name] for run in seeds.values()]) for name in ("bleu_tokens", "bleu", "chrf")]
        row = [model, *values, ", ".join(map(str, seeds))]
        if len(header) > len(row):
            row.append(_published(published.bleu.get(model)))
        rows.append(row)
    for model in [name for name in (published.bleu if published else {}) if name not in scores]:
        rows.append([model, *["–"] * 4, _published(published.bleu[model])])
    runs = [run for seeds in scores.values() for run in seeds.values()]
    signatures = sorted({str(run[name]) for run in runs for name in run if name.endswith("signature")})
    lines = [f"# {facts.title}", ""]
    if smoke:
        lines += ["**A smoke run: a few documents, tiny models. The scores mean nothing.**", ""]
    lines += [markdown([header, *rows]), ""]
    lines += [f"Over {runs[0]['sentences']:,} test sentences; several seeds: mean ± standard deviation. Signatures: "
              f"{'; '.join(f'`{one}`' for one in signatures)}.", ""]  # fmt: skip
    if published:
        lines += [f"Published: {published.source}.", ""]
    lines += _sentences(published.sentences if published else {}, counts)
    return "\n".join(lines)


def _sentences(published: Dict[str, int], counts: Dict[str, int]) -> List[str]:
    """Returns how many sentences the splits have, and should have."""
    found = []
    for split, count in counts.items():
        other = published.get(split, count)
        found.append(f"{split} {count:,}" + (f" (published: {other:,})" if other != count else ""))
    return [f"Sentences: {', '.join(found)}."]


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def _published(value: Optional[float]) -> str:
    return "–" if value is None else f"{value:.2f}"
