"""Agreement of the encoder's context mechanisms with the highlighted words of SCAT."""

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.context.base import ContextMechanism
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.corpus.subwords import WORD_BEGINS
from docnmt_fairseq.layers.capture import SENTENCES, TOKENS, Evidence, Relevance, Weights, capture
from docnmt_fairseq.report.html import bar_chart, table
from docnmt_fairseq.report.inspection import dataset_of_lines
from docnmt_fairseq.report.scat import Example, Scat
from docnmt_fairseq.report.views import View, mechanism_name, sum_by_sentence

SELECTED, ON_SENTENCES, ON_WORDS = "sentence is selected", "weight of the sentence", "weight of the word"


@dataclass
class HeadFigures:
    """One measure of one mechanism, for every case."""

    heads: List[np.ndarray] = field(default_factory=list)  # value of each head, [H]
    chance: List[float] = field(default_factory=list)  # of uniform weights, or the same number of random sentences

    def add(self, heads: Tensor, chance: float) -> None:
        """Adds a case."""
        self.heads.append(heads.numpy())
        self.chance.append(chance)

    @property
    def by_head(self) -> np.ndarray:
        """Mean over the cases, [H]."""
        return np.mean(self.heads, axis=0)

    @property
    def any_head(self) -> float:
        """Mean of the best head of every case."""
        return float(np.max(self.heads, axis=1).mean())


@dataclass
class Agreement:
    """Agreement of all mechanisms, by title of the mechanism and measure."""

    figures: Dict[str, Dict[str, HeadFigures]] = field(default_factory=dict)
    cases: int = 0  # pairs of a pronoun and a highlighted word in a previous sentence
    own: int = 0  # ignored highlighted words in the sentence of the pronoun
    long: int = 0  # examples that are too long for the model


# A pronoun and a highlighted word: packed tokens of the pronoun, row of the sentence of the word, and packed tokens of
# the word (none for words of the target).
Case = Tuple[List[int], int, List[int]]


def measure(ensemble: Ensemble, scat: Scat, codec: TextCodec) -> Agreement:
    """Measures the agreement of the encoder's mechanisms, one example per batch."""
    encoder, agreement = ensemble.model.encoder, Agreement()
    modules = {
        View(f"encoder.{name}", mechanism_name(module), "source", "source").title: module
        for name, module in encoder.named_modules()
        if isinstance(module, ContextMechanism)
    }
    for example in scat.examples:
        tokens = [_tokens(sentence, codec) for sentence in example.sentences]
        lines = [" ".join([*codec.begin(0), *chain.from_iterable(words)]) for words in tokens]
        dataset = dataset_of_lines(ensemble, lines, "--scat")
        if len(dataset) > 1 or len(dataset.too_long(*ensemble.model.max_positions())):
            agreement.long += 1
            continue
        batch: Dict[str, Any] = dataset.collater([dataset[0]])
        inputs = batch["net_input"]
        layout: DocumentLayout = inputs["layout"]
        with capture() as captured, torch.no_grad():
            encoder(inputs["src_tokens"], layout=layout)
        cases = _cases(example, tokens, len(codec.begin(0)), layout)
        agreement.cases += len(cases)
        agreement.own += sum(sentence == len(tokens) - 1 for sentence, _ in example.highlighted)
        for title, module in modules.items():
            _add(agreement.figures.setdefault(title, {}), captured.of(module), cases, layout)
    return agreement


def _tokens(words: Sequence[str], codec: TextCodec) -> List[List[str]]:
    """Tokens of each word, without the tokens at the beginning of sentences."""

    def encoded(text: str) -> List[str]:
        return codec.encode(0, [text])[0].split()[len(codec.begin(0)) :]

    tokens = encoded(" ".join(words))
    pieces = any(token.startswith(WORD_BEGINS) for token in tokens)
    grouped: List[List[str]] = []
    for token in tokens:
        if not grouped or not pieces or token.startswith(WORD_BEGINS):
            grouped.append([])
        grouped[-1].append(token)
    # Tokenisation and normalisation may merge or split words; then words are encoded one by one.
    return grouped if len(grouped) == len(words) else list(map(encoded, words))


def _cases(example: Example, tokens: List[List[List[str]]], begin: int, layout: DocumentLayout) -> List[Case]:
    """Pairs of a pronoun and a highlighted word in a previous sentence.

    ``tokens`` are those of each word, by sentence; ``begin`` is the number of tokens before the first word of each.
    """
    last = len(tokens) - 1

    def numbers(sentence: int, word: Optional[int]) -> List[int]:
        if word is None:
            return []
        before = sum(len(of_word) for of_word in tokens[sentence][:word])
        start = int(layout.tokens.offsets[sentence]) + begin + before
        return list(range(start, start + len(tokens[sentence][word])))

    highlighted = [(sentence, numbers(sentence, word)) for sentence, word in example.highlighted if sentence < last]
    pronouns = [found for word in example.pronouns if (found := numbers(last, word))]
    return [(pronoun, *word) for pronoun in pronouns for word in highlighted]


def _add(figures: Dict[str, HeadFigures], evidence: List[Evidence], cases: List[Case], layout: DocumentLayout) -> None:
    relevance = next((e.scores for e in evidence if isinstance(e, Relevance)), None)
    of_tokens = next((e.weights for e in evidence if isinstance(e, Weights) and e.over == TOKENS), None)
    of_sentences = next((e.weights for e in evidence if isinstance(e, Weights) and e.over == SENTENCES), None)
    if of_tokens is not None:
        of_tokens = of_tokens[:, : layout.tokens.total]
        of_sentences = sum_by_sentence(of_tokens, layout.tokens) if of_sentences is None else of_sentences
    selected = None  # selected sentences of each token, [N, R, H]
    if relevance is not None:
        selected = relevance.isfinite()
    elif of_tokens is not None and of_sentences is not None:
        selected = of_sentences > 0
    sentences, tokens = layout.tokens.rows, layout.tokens.total
    for pronoun, row, numbers in cases:
        if selected is not None:
            kept = float(selected[pronoun].float().sum(1).mean()) / sentences
            figures.setdefault(SELECTED, HeadFigures()).add(selected[pronoun, row].float().mean(0), kept)
        if of_sentences is not None:
            figures.setdefault(ON_SENTENCES, HeadFigures()).add(of_sentences[pronoun, row].mean(0), 1 / sentences)
        if of_tokens is not None and numbers:
            weights = of_tokens[pronoun][:, numbers].sum(1).mean(0)
            figures.setdefault(ON_WORDS, HeadFigures()).add(weights, len(numbers) / tokens)


def section(scat: Scat, agreement: Agreement) -> str:
    """Charts and a table of the figures."""
    notes = (
        f"{len(scat.examples):,} examples, {agreement.cases:,} pairs of a pronoun and a highlighted word in a previous "
        f"sentence; {agreement.own:,} highlighted words in the sentence of the pronoun are ignored. "
        f"{scat.repaired:,} examples had unbalanced tags; {scat.damaged:,} damaged examples, {scat.unmarked:,} without "
        f"pronoun or highlighted word and {agreement.long:,} too long ones were skipped; in {scat.unaligned:,} the "
        "highlighted sentences of the target are not aligned. The best head is selected on "
        "these examples. Chance: the same number of random sentences, or uniform weights."
    )
    charts, rows = [], []
    for title, measures in agreement.figures.items():
        for name, figures in measures.items():
            by_head, chance = figures.by_head, float(np.mean(figures.chance))
            best = int(by_head.argmax())
            bars = {f"head {head + 1}": float(value) for head, value in enumerate(by_head)}
            charts.append(bar_chart(f"{title}: {name}", {**bars, "any head": figures.any_head}, chance))
            shares = (figures.any_head, by_head[best], by_head.mean(), chance)
            rows.append([title, name, *(f"{100 * share:.1f} %" for share in shares), str(best + 1)])
    header = ["mechanism", "measure", "any head", "best head", "mean of heads", "by chance", "best head is"]
    found = table(header, rows, "Agreement with highlighted words") if rows else "<p>No mechanism to measure.</p>"
    return f'<p class="note">{notes}</p><div class="charts">{"".join(charts)}</div>{found}'
