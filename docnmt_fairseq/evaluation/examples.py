"""Sentences that systems translate differently, side by side with their context (as in [M] table 5)."""

from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence

from docnmt_fairseq.evaluation.metrics import METRICS
from docnmt_fairseq.evaluation.metrics.sacrebleu_metrics import SentenceBleu
from docnmt_fairseq.evaluation.tables import Definitions, Part
from docnmt_fairseq.evaluation.texts import References, Stream
from docnmt_fairseq.options import CheckedOptions, Choices, option


@dataclass(frozen=True)
class ExampleOptions(CheckedOptions):
    """Options of the selection of examples."""

    examples: Optional[int] = option(
        None, "show up to N sentences that systems translate differently", minimum=0, metavar="N"
    )
    example_order: str = option(
        "text",
        "document order, or the largest gain or loss of the last system over the first one",
        names=Choices(("text", "gain", "loss")),
    )
    example_metric: str = option(
        "chrf", "sentence-level metric of gains and losses", names=Choices(("chrf", "bleu", "ter"))
    )
    example_lines: Sequence[int] = option(
        (), "show these lines of the reference, from 1, identical or not", metavar="LINE"
    )
    example_context: int = option(3, "previous sentences of each", minimum=0, metavar="N")


@dataclass(frozen=True)
class Example:
    """One sentence; line in the references and document, from 1."""

    line: int
    document: int
    context: List[str]  # previous sentences of the source if it is known, otherwise of the first reference
    source: Optional[str]
    references: List[str]
    translations: Dict[str, str]  # by system
    difference: float  # score of the last system minus that of the first one


@dataclass(frozen=True)
class Examples:
    """Selected examples, with the numbers of sentences that differ and of all sentences."""

    shown: List[Example]
    differing: int
    sentences: int
    metric: str

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        counts = f"{len(self.shown):,} examples; {self.differing:,} of {self.sentences:,} sentences differ"
        parts: List[Part] = [counts]
        for example in self.shown:
            rows = [["context", sentence] for sentence in example.context]
            rows += [] if example.source is None else [["source", example.source]]
            rows += [["reference", sentence] for sentence in example.references]
            rows += [[name, sentence] for name, sentence in example.translations.items()]
            place = f"line {example.line:,}, document {example.document:,}"
            parts.append(Definitions(rows, f"{place}; {self.metric} {example.difference:+.2f}"))
        return parts


def find_examples(references: References, systems: Mapping[str, Stream], options: ExampleOptions) -> Examples:
    """Selects sentences that are not translated identically by all systems."""
    lines = options.example_lines
    kind = SentenceBleu if options.example_metric == "bleu" else METRICS[options.example_metric]
    metric = kind(references, kind.Options())
    first, *_, last = systems.values()
    rows = zip(metric.statistics(first), metric.statistics(last))
    sign = -1 if metric.lower_is_better else 1
    previous = references.source or references.streams[0]
    found, differing = [], 0
    for document, numbers in enumerate(references.lines):
        for place, line in enumerate(numbers):
            one, other = next(rows)
            translations = {name: stream[document][place] for name, stream in systems.items()}
            differs = len({*translations.values()}) > 1
            differing += differs
            if line in lines if lines else differs:
                example = Example(
                    line=line,
                    document=document + 1,
                    context=previous[document][max(0, place - options.example_context) : place],
                    source=None if references.source is None else references.source[document][place],
                    references=[stream[document][place] for stream in references.streams],
                    translations=translations,
                    difference=sign * (metric.score(other) - metric.score(one)),
                )
                found.append(example)
    if options.example_order != "text":
        found.sort(key=lambda example: example.difference, reverse=options.example_order == "gain")
    return Examples(found[: options.examples], differing, references.sentences, metric.title)
