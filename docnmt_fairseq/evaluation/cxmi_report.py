"""Report of ``docnmt cxmi``: CXMI by probe with intervals, and the tokens that depend most on context."""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

import numpy as np
from fairseq.data import Dictionary

from docnmt_fairseq.evaluation.cxmi import ProbeScores, TokenizedTestSet, sentences_of
from docnmt_fairseq.evaluation.significance import IntervalOptions, format_interval
from docnmt_fairseq.evaluation.tables import Part, Table

CONTEXT_SENTENCES = 3  # shown before the sentence of a token
MIN_COUNT = 5  # of listed words


@dataclass(frozen=True)
class CxmiReport:
    """Results, in nats.

    Attributes:
        probes: by probe, the mean log-probability of target tokens, the CXMI per sentence [F21 eq. 4] and per token
            relative to no context, and their 95 % intervals (None for a single document).
        tokens: tokens with the highest P-CXMI [F23]: position in the target sentence from 0, its number of tokens, line
            of the files from 1, probabilities, the sentence and its previous source sentences.
        words: frequent words with their mean P-CXMI and count.
        about: names and values of the settings.
    """

    probes: Dict[str, Dict[str, Any]]
    tokens: List[Dict[str, Any]]
    words: List[Dict[str, Any]]
    about: Dict[str, Any]

    def to_json(self) -> Dict[str, Any]:
        """All figures as plain dictionaries and lists."""
        return {"about": self.about, "probes": self.probes, "tokens": self.tokens, "words": self.words}

    def parts(self) -> List[Part]:
        """Parts for :func:`docnmt_fairseq.evaluation.tables.render`."""
        rows = [
            ["context", "CXMI per sentence (nats)", "95 % interval", "per token", "95 % interval", "log p per token"]
        ]
        for probe, figures in self.probes.items():
            cells = [probe]
            for name in ("cxmi", "cxmi_token"):
                cells += [f"{figures[name]:.4f}", format_interval(figures[f"{name}_interval"], "{:.4f}")]
            rows.append([*cells, f"{figures['log_probability']:.4f}"])
        parts: List[Part] = [Table(rows)]
        if self.words:
            words = [[one["word"], f"{one['pcxmi']:.3f}", str(one["count"])] for one in self.words]
            parts.append(Table([["word", "P-CXMI (nats)", "count"], *words], "Words by mean P-CXMI"))
        if self.tokens:
            header = ["token", "P-CXMI", "p with", "p without", "line", "target", "context"]
            tokens = [
                [
                    one["token"],
                    f"{one['pcxmi']:.3f}",
                    f"{one['with_context']:.4f}",
                    f"{one['without_context']:.4f}",
                    str(one["line"]),
                    excerpt(one["target"], one["position"] / one["target_tokens"]),
                    excerpt(" / ".join(one["context"]), 1),
                ]
                for one in self.tokens
            ]
            parts.append(Table([header, *tokens], "Tokens that depend most on context (whole texts: --format json)"))
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
    """
    documents = [test_set.sentences[number].document for number in measured.numbers]
    counts = [len(scores) for scores in measured.scores["empty"]]
    probes = {}
    for probe, of_probe in measured.scores.items():
        totals = [float(part.sum()) for part in measured.pointwise(probe)]
        probes[probe] = {
            "log_probability": math.fsum(float(score.sum()) for score in of_probe) / sum(counts),
            "cxmi": math.fsum(totals) / len(totals),
            "cxmi_interval": intervals.of_mean(totals, documents),
            "cxmi_token": math.fsum(totals) / sum(counts),
            "cxmi_token_interval": intervals.of_mean(totals, documents, counts),
        }
    about = {**about, "sentences": len(counts), "tokens": sum(counts), "documents": len(set(documents))}
    about["resampled"] = intervals.describe()
    top_tokens = _top_tokens(test_set, measured, dictionary, tokens)
    return CxmiReport(probes, top_tokens, _top_words(test_set, measured, dictionary, tokens), about)


def excerpt(text: str, place: float, width: int = 40) -> str:
    """Part of a text, at most ``width`` characters around a place from 0, the start, to 1, the end."""
    start = max(0, min(round(place * len(text) - width / 2), len(text) - width))
    before, after = "…" if start else "", "…" if start + width < len(text) else ""
    return before + text[start + len(before) : start + width - len(after)] + after


def _top_tokens(
    test_set: TokenizedTestSet, measured: ProbeScores, dictionary: Dictionary, limit: int
) -> List[Dict[str, Any]]:
    positive: List[Tuple[float, int, int]] = [
        (-float(value), place, position)
        for place, values in enumerate(measured.pointwise("true"))
        for position, value in enumerate(values)
        if value > 0
    ]
    found = []
    for value, place, position in sorted(positive)[:limit]:
        number = measured.numbers[place]
        sentence = test_set.sentences[number]
        before = [row for row in sentences_of(test_set.documents[sentence.document]) if row < number]
        token = {
            "pcxmi": -value,
            "token": dictionary[sentence.target[position]],
            "position": position,
            "target_tokens": len(sentence.target),
            "line": sentence.line,
            "with_context": math.exp(measured.scores["true"][place][position]),
            "without_context": math.exp(measured.scores["empty"][place][position]),
            "source": sentence.texts[0],
            "target": sentence.texts[1],
            "context": [test_set.sentences[row].texts[0] for row in before[-CONTEXT_SENTENCES:]],
        }
        found.append(token)
    return found


def _top_words(
    test_set: TokenizedTestSet, measured: ProbeScores, dictionary: Dictionary, limit: int
) -> List[Dict[str, Any]]:
    of_token: Dict[int, List[float]] = defaultdict(list)
    for number, values in zip(measured.numbers, measured.pointwise("true")):
        for token, value in zip(test_set.sentences[number].target, values):
            of_token[token].append(float(value))
    words = [
        {"word": dictionary[token], "pcxmi": float(np.mean(values)), "count": len(values)}
        for token, values in of_token.items()
        if len(values) >= MIN_COUNT
    ]
    return sorted((one for one in words if one["pcxmi"] > 0), key=lambda one: (-one["pcxmi"], one["word"]))[:limit]
