"""CXMI by probe with intervals, and the tokens that depend most on context; as text, Markdown or JSON."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np
from fairseq.data import Dictionary

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.bootstrap import Interval, check_bootstrap, interval_of_mean, interval_text
from docnmt_fairseq.evaluation.context_use.corpus import TestSet, sentences_of
from docnmt_fairseq.evaluation.context_use.cxmi import Measured
from docnmt_fairseq.evaluation.tables import aligned, markdown

CONTEXT_SHOWN = 3  # sentences before that of a token
FREQUENT = 5  # a word as often as this has a mean worth showing


@dataclass(frozen=True)
class Figures:
    """What a probe does.

    Attributes:
        log_probability: of a target token, mean, nats.
        cxmi: of a sentence [F21 eq. 4], mean, nats, against no context.
        cxmi_interval: of 95 %, over documents drawn with replacement; None if all sentences are of one.
        cxmi_token: the same of a token.
        cxmi_token_interval: its interval.
    """

    log_probability: float
    cxmi: float
    cxmi_interval: Interval
    cxmi_token: float
    cxmi_token_interval: Interval


@dataclass(frozen=True)
class ContextToken:
    """A target token that depends on context.

    Attributes:
        pcxmi: [F23], nats.
        token: as the model has it.
        position: in the target sentence, from 0.
        line: of the files, from 1.
        with_context, without_context: its probability.
        source, target: its sentence.
        context: source sentences before.
    """

    pcxmi: float
    token: str
    position: int
    line: int
    with_context: float
    without_context: float
    source: str
    target: str
    context: List[str]


@dataclass(frozen=True)
class CxmiReport:
    """Figures by probe, the tokens with the highest P-CXMI, frequent words by their mean one, and what was done."""

    probes: Dict[str, Figures]
    tokens: List[ContextToken]
    words: List[Tuple[str, float, int]]
    about: Dict[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """Everything as plain dictionaries and lists."""
        return {
            "about": self.about,
            "probes": {probe: asdict(figures) for probe, figures in self.probes.items()},
            "tokens": [asdict(token) for token in self.tokens],
            "words": [{"word": word, "pcxmi": mean, "count": count} for word, mean, count in self.words],
        }


def check_options(tokens: int, samples: int, seed: int) -> None:
    """Raises :class:`InputError` for what :func:`build_report` cannot do."""
    check_bootstrap(samples, seed)
    if tokens < 0:
        raise InputError(f"--tokens {tokens}: at least 0")


def build_report(
    test_set: TestSet,
    measured: Measured,
    dictionary: Dictionary,
    about: Dict[str, Any],
    tokens: int = 20,
    samples: int = 1000,
    seed: int = 1,
) -> CxmiReport:
    """Sums up what was measured.

    Args:
        test_set, measured: see :func:`docnmt_fairseq.evaluation.context_use.cxmi.measure`.
        dictionary: of the target.
        about: kept for the reader.
        tokens: listed at most, and as many words.
        samples, seed: of the bootstrap.

    Raises:
        InputError: an option out of range, or probabilities that are no numbers.
    """
    check_options(tokens, samples, seed)
    for probe, scores in measured.scores.items():
        for number, score in zip(measured.numbers, scores):
            if not np.isfinite(score).all():
                line = test_set.sentences[number].line
                raise InputError(f"line {line}, {probe} context: the model gives probabilities that are no numbers")
    documents = [test_set.sentences[number].document for number in measured.numbers]
    counts = [len(score) for score in measured.scores["empty"]]
    probes = {}
    for probe, scores in measured.scores.items():
        totals = [float(part.sum()) for part in measured.pointwise(probe)]
        probes[probe] = Figures(
            log_probability=math.fsum(float(score.sum()) for score in scores) / sum(counts),
            cxmi=math.fsum(totals) / len(totals),
            cxmi_interval=interval_of_mean(totals, documents, samples, seed),
            cxmi_token=math.fsum(totals) / sum(counts),
            cxmi_token_interval=interval_of_mean(totals, documents, samples, seed, counts),
        )
    about = {**about, "sentences": len(counts), "tokens": sum(counts), "documents": len(set(documents))}
    about["resampled"] = f"documents, {samples:,} times, seed {seed}"
    return CxmiReport(
        probes, _tokens(test_set, measured, dictionary, tokens), _words(test_set, measured, dictionary, tokens), about
    )


def _tokens(test_set: TestSet, measured: Measured, dictionary: Dictionary, most: int) -> List[ContextToken]:
    """The tokens with the highest P-CXMI under true context, those above zero."""
    pointwise = measured.pointwise("true")
    flat = [
        (float(value), place, position)
        for place, values in enumerate(pointwise)
        for position, value in enumerate(values)
        if value > 0
    ]
    found = []
    for value, place, position in sorted(flat, key=lambda one: (-one[0], one[1], one[2]))[:most]:
        sentence = test_set.sentences[measured.numbers[place]]
        rows = sentences_of(test_set.documents[sentence.document])
        before = [row for row in rows if row < measured.numbers[place]][-CONTEXT_SHOWN:]
        found.append(
            ContextToken(
                pcxmi=value,
                token=dictionary[sentence.target[position]],
                position=position,
                line=sentence.line,
                with_context=math.exp(measured.scores["true"][place][position]),
                without_context=math.exp(measured.scores["empty"][place][position]),
                source=sentence.texts[0],
                target=sentence.texts[1],
                context=[test_set.sentences[row].texts[0] for row in before],
            )
        )
    return found


def _words(test_set: TestSet, measured: Measured, dictionary: Dictionary, most: int) -> List[Tuple[str, float, int]]:
    """The frequent target tokens with the highest mean P-CXMI: token, mean, count."""
    of_token: Dict[int, List[float]] = {}
    for number, values in zip(measured.numbers, measured.pointwise("true")):
        for token, value in zip(test_set.sentences[number].target, values):
            of_token.setdefault(token, []).append(float(value))
    means = [
        (dictionary[token], float(np.mean(values)), len(values))
        for token, values in of_token.items()
        if len(values) >= FREQUENT
    ]
    return sorted((one for one in means if one[1] > 0), key=lambda one: (-one[1], one[0]))[:most]


def as_text(report: CxmiReport) -> str:
    """Lays the figures out in columns."""
    return _laid_out(report, aligned, "{}")


def as_markdown(report: CxmiReport) -> str:
    """Lays the figures out as tables of Markdown."""
    return _laid_out(report, markdown, "### {}")


def _laid_out(report: CxmiReport, table: Callable[[Sequence[Sequence[str]]], str], heading: str) -> str:
    rows = [
        ["context", "CXMI, nats a sentence", "95 % interval", "a token", "95 % interval", "log-probability a token"]
    ]
    for probe, figures in report.probes.items():
        intervals = [interval_text(found, "{:.4f}") for found in (figures.cxmi_interval, figures.cxmi_token_interval)]
        rows.append(
            [
                probe,
                f"{figures.cxmi:.4f}",
                intervals[0],
                f"{figures.cxmi_token:.4f}",
                intervals[1],
                f"{figures.log_probability:.4f}",
            ]
        )
    parts = [table(rows)]
    if report.words:
        words = [[word, f"{mean:.3f}", str(count)] for word, mean, count in report.words]
        parts += [heading.format("Words by mean P-CXMI"), table([["word", "P-CXMI, nats", "times"], *words])]
    if report.tokens:
        parts.append(heading.format("Tokens that depend most on context"))
        shown = [["token", "P-CXMI", "with", "without", "line", "source", "target", "before"]]
        for token in report.tokens:
            values = [f"{token.pcxmi:.3f}", f"{token.with_context:.4f}", f"{token.without_context:.4f}"]
            shown.append([token.token, *values, str(token.line), token.source, token.target, " / ".join(token.context)])
        parts.append(table(shown))
    parts.append("; ".join(f"{name}: {value}" for name, value in report.about.items()))
    return "\n\n".join(parts)
