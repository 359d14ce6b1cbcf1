"""Report of ``docnmt cxmi``: CXMI by probe with intervals, and the tokens that depend most on context."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Tuple

import numpy as np
from fairseq.data import Dictionary

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.cxmi import ProbeScores, TokenizedTestSet, sentences_of
from docnmt_fairseq.evaluation.significance import Interval, IntervalOptions, format_interval
from docnmt_fairseq.evaluation.tables import Part, Table

CONTEXT_SENTENCES = 3  # shown before the sentence of a token
MIN_COUNT = 5  # of listed words


@dataclass(frozen=True)
class ProbeResult:
    """Results of a probe, in nats.

    Attributes:
        log_probability: mean of target tokens.
        cxmi: mean of sentences [F21 eq. 4], relative to no context.
        cxmi_interval: 95 % interval by resampling documents; None for a single document.
        cxmi_token: mean of tokens.
        cxmi_token_interval: its interval.
    """

    log_probability: float
    cxmi: float
    cxmi_interval: Interval
    cxmi_token: float
    cxmi_token_interval: Interval


@dataclass(frozen=True)
class ContextToken:
    """Target token that depends on context.

    Attributes:
        pcxmi: [F23], nats.
        token: symbol of the dictionary.
        position: in the target sentence, from 0.
        line: of the files, from 1.
        with_context, without_context: probabilities.
        source, target: its sentence.
        context: previous source sentences.
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
    """Results by probe, tokens with the highest P-CXMI, frequent words with their mean P-CXMI, and the settings."""

    probes: Dict[str, ProbeResult]
    tokens: List[ContextToken]
    words: List[Tuple[str, float, int]]
    about: Dict[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain dictionaries and lists."""
        return {
            "about": self.about,
            "probes": {probe: asdict(result) for probe, result in self.probes.items()},
            "tokens": [asdict(token) for token in self.tokens],
            "words": [{"word": word, "pcxmi": mean, "count": count} for word, mean, count in self.words],
        }

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        rows = [
            ["context", "CXMI per sentence (nats)", "95 % interval", "per token", "95 % interval", "log p per token"]
        ]
        for probe, result in self.probes.items():
            sentence, token = (
                format_interval(interval, "{:.4f}") for interval in (result.cxmi_interval, result.cxmi_token_interval)
            )
            figures = [f"{figure:.4f}" for figure in (result.cxmi, result.cxmi_token, result.log_probability)]
            rows.append([probe, figures[0], sentence, figures[1], token, figures[2]])
        parts: List[Part] = [Table(rows)]
        if self.words:
            words = [[word, f"{mean:.3f}", str(count)] for word, mean, count in self.words]
            parts.append(Table([["word", "P-CXMI (nats)", "count"], *words], "Words by mean P-CXMI"))
        if self.tokens:
            header = ["token", "P-CXMI", "p with context", "p without", "line", "source", "target", "context"]
            tokens = [
                [
                    token.token,
                    f"{token.pcxmi:.3f}",
                    f"{token.with_context:.4f}",
                    f"{token.without_context:.4f}",
                    str(token.line),
                    token.source,
                    token.target,
                    " / ".join(token.context),
                ]
                for token in self.tokens
            ]
            parts.append(Table([header, *tokens], "Tokens that depend most on context"))
        return [*parts, "; ".join(f"{name}: {value}" for name, value in self.about.items())]


def build_report(
    test_set: TokenizedTestSet,
    measured: ProbeScores,
    dictionary: Dictionary,
    about: Dict[str, Any],
    tokens: int = 20,
    intervals: IntervalOptions = IntervalOptions(),
) -> CxmiReport:
    """Summarises the scores of probes.

    Args:
        test_set: test set.
        measured: result of :func:`docnmt_fairseq.evaluation.cxmi.measure`.
        dictionary: target dictionary.
        about: names and values of the settings.
        tokens: maximum number of listed tokens, and of words.
        intervals: bootstrap of the intervals.

    Raises:
        InputError: probabilities that are NaN.
    """
    for probe, of_probe in measured.scores.items():
        for number, scores in zip(measured.numbers, of_probe):
            if not np.isfinite(scores).all():
                line = test_set.sentences[number].line
                raise InputError(f"line {line}, {probe} context: the model's probabilities are not finite")
    documents = [test_set.sentences[number].document for number in measured.numbers]
    counts = [len(scores) for scores in measured.scores["empty"]]
    probes = {}
    for probe, of_probe in measured.scores.items():
        totals = [float(part.sum()) for part in measured.pointwise(probe)]
        probes[probe] = ProbeResult(
            log_probability=math.fsum(float(score.sum()) for score in of_probe) / sum(counts),
            cxmi=math.fsum(totals) / len(totals),
            cxmi_interval=intervals.of_mean(totals, documents),
            cxmi_token=math.fsum(totals) / sum(counts),
            cxmi_token_interval=intervals.of_mean(totals, documents, counts),
        )
    about = {**about, "sentences": len(counts), "tokens": sum(counts), "documents": len(set(documents))}
    about["resampled"] = intervals.describe()
    top_tokens = _top_tokens(test_set, measured, dictionary, tokens)
    return CxmiReport(probes, top_tokens, _top_words(test_set, measured, dictionary, tokens), about)


def _top_tokens(
    test_set: TokenizedTestSet, measured: ProbeScores, dictionary: Dictionary, limit: int
) -> List[ContextToken]:
    """Tokens with the highest positive P-CXMI with true context."""
    positive = [
        (float(value), place, position)
        for place, values in enumerate(measured.pointwise("true"))
        for position, value in enumerate(values)
        if value > 0
    ]
    found = []
    for value, place, position in sorted(positive, key=lambda one: (-one[0], one[1], one[2]))[:limit]:
        sentence = test_set.sentences[measured.numbers[place]]
        rows = sentences_of(test_set.documents[sentence.document])
        before = [row for row in rows if row < measured.numbers[place]][-CONTEXT_SENTENCES:]
        token = ContextToken(
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
        found.append(token)
    return found


def _top_words(
    test_set: TokenizedTestSet, measured: ProbeScores, dictionary: Dictionary, limit: int
) -> List[Tuple[str, float, int]]:
    """Frequent target tokens with the highest positive mean P-CXMI: token, mean, count."""
    of_token: Dict[int, List[float]] = {}
    for number, values in zip(measured.numbers, measured.pointwise("true")):
        for token, value in zip(test_set.sentences[number].target, values):
            of_token.setdefault(token, []).append(float(value))
    means = [
        (dictionary[token], float(np.mean(values)), len(values))
        for token, values in of_token.items()
        if len(values) >= MIN_COUNT
    ]
    return sorted((one for one in means if one[1] > 0), key=lambda one: (-one[1], one[0]))[:limit]
