"""Sentences that systems translate differently, side by side with what stands before them (as in [M] table 5)."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.metrics.base import Metric
from docnmt_fairseq.evaluation.tables import markdown
from docnmt_fairseq.evaluation.texts import References, Stream

ORDERS = ("text", "gain", "loss")


@dataclass(frozen=True)
class Example:
    """One sentence.

    Attributes:
        line: where it stands in the references, from 1.
        document: its number, from 1.
        context: the sentences before it in its document, the source's where it is known, else the first reference's.
        source: the sentence itself, None where it is not known.
        references: its references.
        translations: by system.
        difference: the score of the last system less that of the first one.
    """

    line: int
    document: int
    context: List[str]
    source: Optional[str]
    references: List[str]
    translations: Dict[str, str]
    difference: float


@dataclass(frozen=True)
class Examples:
    """The examples that are shown, of how many sentences that differ, of how many in all."""

    shown: List[Example]
    differing: int
    sentences: int
    metric: str

    def to_json(self) -> Dict[str, Any]:
        """Everything as plain values."""
        return asdict(self)


def find_examples(
    references: References,
    systems: Mapping[str, Stream],
    metric: Metric,
    context: int = 3,
    order: str = ORDERS[0],
    lines: Sequence[int] = (),
    most: Optional[int] = None,
) -> Examples:
    """The sentences that not all systems translate alike.

    Args:
        references: of the test set.
        systems: the translations by name.
        metric: whose scores of single sentences differ.
        context: how many sentences before each are shown at most.
        order: of ``ORDERS``: as they stand, or the largest gain, or loss, of the last system over the first one first.
        lines: only those of these lines of the references, alike or not; none: all that differ.
        most: how many are shown; None: all.

    Raises:
        InputError: a line is no sentence.
    """
    known = {number for numbers in references.lines for number in numbers}
    wrong = [number for number in lines if number not in known]
    if wrong:
        raise InputError(f"--lines {' '.join(map(str, wrong))}: no sentence of {references.files[0]}; lines are from 1")
    first, *_, last = metric.statistics(list(systems.values()))
    sign = -1 if metric.lower_is_better else 1
    rows = zip(first, last)  # one a sentence, in the order of the text
    found, differing = [], 0
    for document, numbers in enumerate(references.lines):
        for place, line in enumerate(numbers):
            one, other = next(rows)
            translations = {name: stream[document][place] for name, stream in systems.items()}
            differs = len({*translations.values()}) > 1
            differing += differs
            if line in lines if lines else differs:
                difference = sign * (metric.score(other) - metric.score(one))
                found.append(_example(references, document, place, context, translations, difference))
    if order != ORDERS[0]:
        found.sort(key=lambda example: example.difference, reverse=order == "gain")
    return Examples(found[:most], differing, references.sentences, metric.title)


def _example(
    references: References, document: int, place: int, context: int, translations: Dict[str, str], difference: float
) -> Example:
    source = None if references.source is None else references.source[document]
    before = source or references.streams[0][document]
    return Example(
        line=references.lines[document][place],
        document=document + 1,
        context=before[max(0, place - context) : place],
        source=None if source is None else source[place],
        references=[stream[document][place] for stream in references.streams],
        translations=translations,
        difference=difference,
    )


def as_text(examples: Examples) -> str:
    """The examples for a terminal, names before sentences."""
    parts = [_about(examples)]
    for example in examples.shown:
        rows = _rows(example)
        width = max(len(name) for name, _ in rows)
        parts.append(
            "\n".join([_heading(example, examples.metric), *(f"{name:>{width}}  {text}" for name, text in rows)])
        )
    return "\n\n".join(parts)


def as_markdown(examples: Examples) -> str:
    """The examples as tables of Markdown."""
    parts = [_about(examples)]
    for example in examples.shown:
        parts += [f"**{_heading(example, examples.metric)}**", markdown([["", "sentence"], *_rows(example)])]
    return "\n\n".join(parts)


def _about(examples: Examples) -> str:
    return f"{len(examples.shown):,} shown; {examples.differing:,} of {examples.sentences:,} sentences differ"


def _heading(example: Example, metric: str) -> str:
    return f"line {example.line:,}, document {example.document:,}; {metric} {example.difference:+.2f}"


def _rows(example: Example) -> List[List[str]]:
    rows = [["context", sentence] for sentence in example.context]
    rows += [] if example.source is None else [["source", example.source]]
    rows += [["reference", sentence] for sentence in example.references]
    return rows + [[name, sentence] for name, sentence in example.translations.items()]
