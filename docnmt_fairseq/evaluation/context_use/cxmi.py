"""Conditional cross-mutual information: how much likelier context makes the references.

Sources: [F21] P. Fernandes, K. Yin, G. Neubig and A. Martins, Measuring and Increasing Context Usage in Context-Aware
Machine Translation, ACL 2021, eq. 4; [F23] P. Fernandes, K. Yin, E. Liu, A. Martins and G. Neubig, When Does
Translation Require Context?, ACL 2023, sec. 2 (P-CXMI). One model is asked with and without context, so it must have
seen sentences without context in training (first sentences, context dropout) for the difference to be that of context.
"""

from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.context_use.corpus import TestSet, sentences_of
from docnmt_fairseq.evaluation.context_use.probes import PROBES, check_probes
from docnmt_fairseq.evaluation.forced_decoding import ForcedDecoder, Request, previous_of
from docnmt_fairseq.marks import paragraph_symbol

PORTION = 100_000  # source tokens of documents in memory at a time, about


@dataclass(frozen=True)
class Measured:
    """The log-probabilities of a test set's target tokens under each probe.

    Attributes:
        numbers: [n] of the sentences measured, ascending.
        scores: by probe, [m_t] of each of these sentences.
    """

    numbers: List[int]
    scores: Dict[str, List[np.ndarray]]

    def pointwise(self, probe: str) -> List[np.ndarray]:
        """P-CXMI [F23 sec. 2], log q(y_t | y_<t, x, C) − log q(y_t | y_<t, x), [m_t] of each sentence, nats."""
        return [shown - alone for shown, alone in zip(self.scores[probe], self.scores["empty"])]


def measure(test_set: TestSet, decoder: ForcedDecoder, sentences: int = 0, seed: int = 1) -> Measured:
    """Scores the references with a model under every probe.

    Each sentence with false context needs a document of its own: for long documents measure a sample.

    Args:
        test_set: several documents.
        decoder: with the model.
        sentences: of a random sample; 0: all.
        seed: of the sample and of false context, which is the same for a sentence whatever the sample.

    Raises:
        InputError: an option out of range, or a test set of one document.
    """
    if sentences < 0:
        raise InputError(f"--sentences {sentences}: at least 0")
    if seed < 0:
        raise InputError(f"--seed {seed}: at least 0")
    check_probes(test_set)
    numbers = np.arange(len(test_set.sentences))
    if 0 < sentences < len(numbers):
        numbers = np.sort(np.random.default_rng(seed).choice(numbers, sentences, replace=False))
    scores: Dict[str, List[np.ndarray]] = {}
    for probe in PROBES:
        scores[probe] = []
        for text, requests in _portions(test_set, probe, numbers.tolist(), seed, decoder):
            scores[probe] += decoder.score(text, requests)
    return Measured(numbers.tolist(), scores)


def _portions(
    test_set: TestSet, probe: str, numbers: Sequence[int], seed: int, decoder: ForcedDecoder
) -> Iterator[Tuple[List[Tensor], List[Request]]]:
    """Yields documents as text in portions, and what is asked about their sentences."""
    dictionary = decoder.ensemble.dictionaries[0]
    end = torch.tensor([dictionary.eos()])
    mark = paragraph_symbol(dictionary)
    text: List[Tensor] = []
    requests: List[Request] = []
    starts: Dict[Tuple[int, ...], int] = {}  # of documents in the text
    tokens = 0
    for number in numbers:
        generator = np.random.default_rng((seed, list(PROBES).index(probe), number))
        rows, place = PROBES[probe](test_set, number, generator)
        before = [test_set.sentences[row].target for row in sentences_of(rows[:place])]
        if mark is None:
            rows, place = sentences_of(rows), len(before)
        key = tuple(rows)
        if key not in starts:
            if tokens > PORTION:
                yield text, requests
                text, requests, starts, tokens = [], [], {}, 0
            starts[key] = len(text)
            shown = [
                test_set.sentences[row].source if row >= 0 else torch.tensor([mark] * -row + [dictionary.eos()])
                for row in rows
            ]
            text += [*shown, end]
            tokens += sum(map(len, shown))
        target = test_set.sentences[number].target
        requests.append(Request(starts[key] + place, target, previous_of(before, decoder.target_sentences)))
    yield text, requests
