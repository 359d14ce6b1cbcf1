"""Conditional cross-mutual information: the gain in log-probability of the references from context.

Sources: [F21] P. Fernandes, K. Yin, G. Neubig and A. Martins, Measuring and Increasing Context Usage in Context-Aware
Machine Translation, ACL 2021, eq. 4; [F23] P. Fernandes, K. Yin, E. Liu, A. Martins and G. Neubig, When Does
Translation Require Context?, ACL 2023, sec. 2 (P-CXMI). The same model scores with and without context, so it must have
seen sentences without context in training (first sentences, context dropout).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from docnmt_fairseq.boundaries import paragraph_symbol
from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.delimited import read_documents
from docnmt_fairseq.corpus.pipeline import TextCodec, token_ids
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, ScoringRequest, Tokens, as_tokens, last_of
from docnmt_fairseq.evaluation.text_batches import longest_sentences

MAX_TEXT_TOKENS = 100_000  # source tokens of documents in memory, approximately

# Document: indices of its sentences; -k where k levels of structure end, -1 for a paragraph.
Rows = List[int]


@dataclass(frozen=True)
class SentencePair:
    """Line number in both files, from 1; index of the document; source and target as text and as tokens."""

    line: int
    document: int
    texts: Tuple[str, ...]
    source: Tensor
    target: Tokens


@dataclass(frozen=True)
class TokenizedTestSet:
    """Sentences in order, and documents of consecutive sentences."""

    sentences: List[SentencePair]
    documents: List[Rows]


def sentences_of(rows: Rows) -> List[int]:
    """Indices of the sentences of a document."""
    return [row for row in rows if row >= 0]


def read_test_set(source: Path, target: Path, ensemble: Ensemble, codec: TextCodec) -> TokenizedTestSet:
    """Reads two delimited files as tokens.

    Raises:
        InputError: different boundaries, or sentences that are empty or too long for the model.
    """
    documents: List[Rows] = []
    lines: List[int] = []
    owners: List[int] = []
    texts: List[Tuple[str, ...]] = []
    for number, document in enumerate(read_documents([source, target])):
        rows: Rows = []
        for place, (paragraph, of_paragraph) in enumerate(zip(document.paragraphs, document.lines)):
            rows += [-document.levels_before(place)] if place else []
            rows += range(len(texts), len(texts) + len(paragraph))
            texts += paragraph
            lines += [line for line, _ in of_paragraph]
        owners += [number] * len(document)
        documents.append(rows)
    sides = [
        token_ids(codec.encode_lines(side, [pair[side] for pair in texts]), ensemble.dictionaries[side])
        for side in (0, 1)
    ]
    for file, tokens, longest in zip((source, target), sides, longest_sentences(ensemble)):
        for line, sentence in zip(lines, tokens):
            if not 2 <= len(sentence) <= longest:
                raise InputError.at(file, line, f"{len(sentence)} tokens; the model takes 2 to {longest}")
    sentences = [SentencePair(*fields) for fields in zip(lines, owners, texts, sides[0], as_tokens(sides[1]))]
    return TokenizedTestSet(sentences, documents)


def true_context(test_set: TokenizedTestSet, number: int, generator: np.random.Generator) -> Rows:
    """Document of the sentence."""
    return test_set.documents[test_set.sentences[number].document]


def no_context(test_set: TokenizedTestSet, number: int, generator: np.random.Generator) -> Rows:
    """The sentence alone."""
    return [number]


def shuffled_context(test_set: TokenizedTestSet, number: int, generator: np.random.Generator) -> Rows:
    """Document with every other sentence replaced by a random sentence of another document.

    Shuffling the document's own sentences would keep all information for a model that ignores their order.
    """
    own = sentences_of(true_context(test_set, number, generator))
    drawn = generator.integers(len(test_set.sentences) - len(own), size=len(own))
    drawn[drawn >= own[0]] += len(own)  # skips the document's own sentences, which are consecutive
    return _replace_context(test_set, number, drawn.tolist())


def random_document(test_set: TokenizedTestSet, number: int, generator: np.random.Generator) -> Rows:
    """Document with its other sentences replaced by those of another document, in order; of several if short."""
    own = test_set.sentences[number].document
    drawn: List[int] = []
    while len(drawn) < len(test_set.documents[own]):
        document = int(generator.integers(len(test_set.documents) - 1))
        drawn += sentences_of(test_set.documents[document + (document >= own)])
    return _replace_context(test_set, number, drawn)


def _replace_context(test_set: TokenizedTestSet, number: int, drawn: List[int]) -> Rows:
    others, rows = iter(drawn), test_set.documents[test_set.sentences[number].document]
    return [row if row < 0 or row == number else next(others) for row in rows]


# Document of a sentence with true or false context: (test set, index of the sentence, random generator) → document.
Probe = Callable[[TokenizedTestSet, int, np.random.Generator], Rows]
PROBES: Dict[str, Probe] = {
    "true": true_context,
    "shuffled": shuffled_context,
    "random-document": random_document,
    "empty": no_context,
}


@dataclass(frozen=True)
class ProbeScores:
    """Log-probabilities of target tokens with the context of each probe."""

    numbers: List[int]  # [n] indices of the scored sentences, ascending
    scores: Dict[str, List[np.ndarray]]  # [m_t] of each of these sentences, by probe

    def pointwise(self, probe: str) -> List[np.ndarray]:
        """P-CXMI [F23 sec. 2], log q(y_t | y_<t, x, C) − log q(y_t | y_<t, x), [m_t] of each sentence, nats."""
        return [with_context - alone for with_context, alone in zip(self.scores[probe], self.scores["empty"])]


def measure(test_set: TokenizedTestSet, decoder: ForcedDecoder, sentences: int = 0, seed: int = 1) -> ProbeScores:
    """Scores the references with the context of every probe.

    A false document is encoded for each sentence, so a sample suits test sets of long documents.

    Args:
        test_set: several documents.
        decoder: forced decoder with the model.
        sentences: size of a random sample; 0: all.
        seed: random seed of sample and false context; the latter does not depend on the sample.

    Raises:
        InputError: a single document.
    """
    if len(test_set.documents) < 2:
        raise InputError("the test set has one document; false context is drawn from others")
    numbers = np.arange(len(test_set.sentences))
    if 0 < sentences < len(numbers):
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, sentences, replace=False))
    scores: Dict[str, List[np.ndarray]] = {}
    with tqdm(total=len(PROBES) * len(numbers), desc="cxmi", unit=" sentences", disable=None) as progress:
        for probe in PROBES:
            scores[probe] = []
            for text, requests in _text_parts(test_set, probe, numbers.tolist(), seed, decoder):
                scores[probe] += decoder.score(text, requests, progress.update)
    return ProbeScores(numbers.tolist(), scores)


def _text_parts(
    test_set: TokenizedTestSet, probe: str, numbers: Sequence[int], seed: int, decoder: ForcedDecoder
) -> Iterator[Tuple[List[Tensor], List[ScoringRequest]]]:
    """Yields documents as delimited tokens, with requests for their sentences, in parts of limited size."""
    dictionary = decoder.ensemble.dictionaries[0]
    end = torch.tensor([dictionary.eos()])
    paragraph = paragraph_symbol(dictionary)
    text: List[Tensor] = []
    requests: List[ScoringRequest] = []
    starts: Dict[Tuple[int, ...], int] = {}  # first line of each document
    tokens = 0
    for number in numbers:
        generator = np.random.default_rng((seed, list(PROBES).index(probe), number))
        rows = PROBES[probe](test_set, number, generator)
        rows = sentences_of(rows) if paragraph is None else rows
        place = rows.index(number)
        before = [test_set.sentences[row].target for row in sentences_of(rows[:place])]
        key = tuple(rows)
        if key not in starts:
            if tokens > MAX_TEXT_TOKENS:
                yield text, requests
                text, requests, starts, tokens = [], [], {}, 0
            starts[key] = len(text)
            lines = [
                test_set.sentences[row].source if row >= 0 else torch.tensor([paragraph] * -row + [dictionary.eos()])
                for row in rows
            ]
            text += [*lines, end]
            tokens += sum(map(len, lines))
        target = test_set.sentences[number].target
        requests.append(ScoringRequest(starts[key] + place, target, last_of(before, decoder.target_sentences)))
    yield text, requests
