"""The table of what context is worth: models that see context, with the true one, a false one, and none."""

from typing import Callable, List, Mapping, Optional, Sequence

from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.recipes.columns import Column, metric_columns, score_column
from docnmt_fairseq.recipes.probes import CONTEXTS
from docnmt_fairseq.recipes.scoring import Scores

TRUE = "true"
CXMI = {"true": "true", "shuffled": "shuffled", "random-document": "random document"}  # of no context it is 0
BETWEEN = " / "


def context_lines(metrics: Sequence[str], scores: Mapping[str, Sequence[Scores]]) -> List[str]:
    """The table as lines of Markdown, with what its numbers are; nothing if nothing was asked.

    Args:
        metrics: names of further ones.
        scores: of a test set: of each seed, by model.
    """
    probed = {model: runs for model, runs in scores.items() if any("contexts" in run for run in runs)}
    every = [run for runs in probed.values() for run in runs]
    contexts = [context for context in CONTEXTS if any(context in run["contexts"] for run in every)]
    sampled = next((run["cxmi_sentences"] for run in every if "cxmi" in run), None)
    if not contexts and sampled is None:
        return []
    columns = [score_column("bleu", "BLEU"), *metric_columns(metrics)] if contexts else []
    shown = [TRUE, *contexts]
    header = ["model", *(f"{column.title}: {BETWEEN.join(shown)}" for column in columns)]
    header += [f"CXMI: {BETWEEN.join(CXMI.values())}"] if sampled is not None else []
    rows = []
    for model, runs in probed.items():
        cells = [BETWEEN.join(column.cell(_shown(runs, context)) for context in shown) for column in columns]
        if sampled is not None:
            cells.append(BETWEEN.join(Column("", _cxmi(context), 3).cell(runs) for context in CXMI))
        rows.append([model, *cells])
    return ["### What context is worth", "", markdown([header, *rows]), "", *_legend(contexts, sampled)]


def _shown(runs: Sequence[Scores], context: str) -> List[Scores]:
    """The scores of the translations with a context."""
    return [run if context == TRUE else run["contexts"].get(context, {}) for run in runs]


def _cxmi(context: str) -> Callable[[Scores], Optional[float]]:
    return lambda run: run.get("cxmi", {}).get(context)


def _legend(contexts: Sequence[str], sampled: Optional[int]) -> List[str]:
    """What the numbers are."""
    said = {
        "shuffled": "shuffled: translated among sentences of other documents",
        "none": "none: every sentence by itself",
    }
    found = [f"{'; '.join(said[context] for context in contexts)}."] if contexts else []
    if sampled is not None:
        found.append(
            f"CXMI: nats that context adds to the log-probability of a reference, mean of {sampled:,} sentences drawn; "
            "random document: the sentence stands in another one."
        )
    return [f"{' '.join(found)} A gain that comes from context is there with the true one only.", ""]
