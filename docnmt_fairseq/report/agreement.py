"""Do mechanisms look where translators found their evidence? Measured on the encoder, for pronouns of SCAT."""

from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.context.base import CONTEXT_MECHANISMS, ContextMechanism
from docnmt_fairseq.corpus.subwords import WORD_BEGINS
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.layers.capture import SENTENCES, TOKENS, Evidence, Relevance, Weights, capture
from docnmt_fairseq.report.charts import bar_chart
from docnmt_fairseq.report.documents import dataset_of_lines
from docnmt_fairseq.report.elements import table
from docnmt_fairseq.report.scat import Example, Scat
from docnmt_fairseq.report.views import View, sum_by_sentence

SELECTED, ON_SENTENCES, ON_WORDS = "its sentence is selected", "weight on its sentence", "weight on the word"


@dataclass
class Figures:
    """One measure of one mechanism.

    Attributes:
        heads: of every case, [H].
        chance: of every case, what looking evenly, or choosing as many sentences by lot, would give.
    """

    heads: List[np.ndarray] = field(default_factory=list)
    chance: List[float] = field(default_factory=list)

    @property
    def by_head(self) -> np.ndarray:
        """The mean over the cases, [H]."""
        return np.mean(self.heads, axis=0)

    @property
    def any_head(self) -> float:
        """The mean of the best head of every case."""
        return float(np.max(self.heads, axis=1).mean())


@dataclass
class Agreement:
    """How far each mechanism agrees.

    Attributes:
        figures: by title of the mechanism, by measure.
        cases: pairs of a pronoun and a highlighted word in a sentence before.
        own: highlighted words in the pronoun's own sentence, which are left out.
        long: examples that are too long for the model.
    """

    figures: Dict[str, Dict[str, Figures]] = field(default_factory=dict)
    cases: int = 0
    own: int = 0
    long: int = 0


@dataclass(frozen=True)
class _Places:
    """Where the words of an example are: rows and packed tokens of the batch."""

    pronouns: List[List[int]]
    highlighted: List[Tuple[int, List[int]]]  # row, tokens; none where the word is of the other language


def measure(ensemble: Ensemble, scat: Scat, codec: TextCodec) -> Agreement:
    """Measures the agreement of the encoder's mechanisms, one example a batch."""
    encoder, agreement = ensemble.model.encoder, Agreement()
    modules = {
        View(f"encoder.{name}", _name(module), "source", "source").title: module
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
        with capture() as recording, torch.no_grad():
            encoder(inputs["src_tokens"], layout=inputs["layout"])
        places, own = _places(example, tokens, len(codec.begin(0)), inputs["layout"])
        agreement.cases += len(places.pronouns) * len(places.highlighted)
        agreement.own += own
        for title, module in modules.items():
            _add(agreement.figures.setdefault(title, {}), recording.of(module), places, inputs["layout"])
    return agreement


def _name(module: nn.Module) -> str:
    names = (name for name in CONTEXT_MECHANISMS.names() if CONTEXT_MECHANISMS[name] is type(module))
    return next(names, type(module).__name__)


def _tokens(words: Sequence[str], codec: TextCodec) -> List[List[str]]:
    """The tokens of each word, without what sentences begin with."""

    def encoded(text: str) -> List[str]:
        return codec.encode(0, [text])[0].split()[len(codec.begin(0)) :]

    tokens = encoded(" ".join(words))
    pieces = any(token.startswith(WORD_BEGINS) for token in tokens)
    grouped: List[List[str]] = []
    for token in tokens:
        if not grouped or not pieces or token.startswith(WORD_BEGINS):
            grouped.append([])
        grouped[-1].append(token)
    # Tokenisation and normalisation may join or part words; then each is taken by itself.
    return grouped if len(grouped) == len(words) else list(map(encoded, words))


def _places(example: Example, tokens: List[List[List[str]]], begin: int, layout: DocumentLayout) -> Tuple[_Places, int]:
    """Where the words are, and how many highlighted ones are in the pronoun's own sentence.

    Args:
        example: whose words.
        tokens: of each word, by sentence.
        begin: how many tokens stand before the first word of each sentence.
        layout: of the example.
    """
    last = len(tokens) - 1

    def numbers(sentence: int, word: Optional[int]) -> List[int]:
        if word is None:
            return []
        before = sum(len(of_word) for of_word in tokens[sentence][:word])
        start = int(layout.tokens.offsets[sentence]) + begin + before
        return list(range(start, start + len(tokens[sentence][word])))

    before = [(sentence, numbers(sentence, word)) for sentence, word in example.highlighted if sentence < last]
    pronouns = [found for word in example.pronouns if (found := numbers(last, word))]
    return _Places(pronouns, before), len(example.highlighted) - len(before)


def _add(figures: Dict[str, Figures], evidence: List[Evidence], places: _Places, layout: DocumentLayout) -> None:
    relevance = next((e.scores for e in evidence if isinstance(e, Relevance)), None)
    of_tokens = next((e.weights for e in evidence if isinstance(e, Weights) and e.over == TOKENS), None)
    of_sentences = next((e.weights for e in evidence if isinstance(e, Weights) and e.over == SENTENCES), None)
    if of_tokens is not None:
        of_tokens = of_tokens[:, : layout.tokens.total]
        of_sentences = sum_by_sentence(of_tokens, layout.tokens) if of_sentences is None else of_sentences
    selected = _selected(relevance, of_tokens, of_sentences)
    sentences, tokens = layout.tokens.rows, layout.tokens.total
    for pronoun in places.pronouns:
        for row, numbers in places.highlighted:
            if selected is not None:
                kept = float(selected[pronoun].float().sum(1).mean()) / sentences
                _case(figures, SELECTED, selected[pronoun, row].float().mean(0), kept)
            if of_sentences is not None:
                _case(figures, ON_SENTENCES, of_sentences[pronoun, row].mean(0), 1 / sentences)
            if of_tokens is not None and numbers:
                weights = of_tokens[pronoun][:, numbers].sum(1).mean(0)
                _case(figures, ON_WORDS, weights, len(numbers) / tokens)


def _selected(relevance: Optional[Tensor], tokens: Optional[Tensor], sentences: Optional[Tensor]) -> Optional[Tensor]:
    """The sentences that each token selects, [N, R, H]; None for attention to all of them."""
    if relevance is not None:
        return relevance.isfinite()
    return None if tokens is None or sentences is None else sentences > 0


def _case(figures: Dict[str, Figures], name: str, heads: Tensor, chance: float) -> None:
    of_measure = figures.setdefault(name, Figures())
    of_measure.heads.append(heads.numpy())
    of_measure.chance.append(chance)


def section(scat: Scat, agreement: Agreement) -> str:
    """The figures as charts and a table."""
    notes = (
        f"{len(scat.examples):,} examples, {agreement.cases:,} pairs of a pronoun and a highlighted word in a sentence "
        f"before it; {agreement.own:,} highlighted words in the pronoun's own sentence are left out. "
        f"{scat.repaired:,} examples had tags to repair, {scat.damaged:,} damaged ones, {scat.unmarked:,} without "
        f"pronoun or highlighted word and {agreement.long:,} too long ones are left out; in {scat.unaligned:,} the "
        "highlighted sentences of the target have no counterpart. The best head is chosen on "
        "these very examples. By chance: as many sentences by lot, or even weights."
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
    header = ["mechanism", "of a highlighted word", "any head", "best head", "mean of heads", "by chance", "best is"]
    found = table(header, rows, "Agreement with highlighted words") if rows else "<p>There is nothing to measure.</p>"
    return f'<p class="note">{notes}</p><div class="charts">{"".join(charts)}</div>{found}'
