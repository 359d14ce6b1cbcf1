"""What a sentence is shown as its document: the true one, a false one, or nothing."""

from typing import Callable, Dict, List, Tuple

import numpy as np

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.context_use.corpus import Rows, TestSet, sentences_of

# From a test set, the number of a sentence and a generator: a document, and the sentence's place in it.
Probe = Callable[[TestSet, int, np.random.Generator], Tuple[Rows, int]]


def true(test_set: TestSet, number: int, generator: np.random.Generator) -> Tuple[Rows, int]:
    """The sentence's own document."""
    rows = test_set.documents[test_set.sentences[number].document]
    return rows, rows.index(number)


def empty(test_set: TestSet, number: int, generator: np.random.Generator) -> Tuple[Rows, int]:
    """The sentence alone."""
    return [number], 0


def shuffled(test_set: TestSet, number: int, generator: np.random.Generator) -> Tuple[Rows, int]:
    """The document with every other sentence replaced by one of another document, each of its own.

    (To shuffle the document's own sentences would leave a model that finds words anywhere all it needs.)
    """
    own = sentences_of(test_set.documents[test_set.sentences[number].document])
    drawn = generator.integers(len(test_set.sentences) - len(own), size=len(own))
    drawn[drawn >= own[0]] += len(own)  # none of its own sentences, whose numbers follow one another
    return _replaced(test_set, number, drawn.tolist())


def random_document(test_set: TestSet, number: int, generator: np.random.Generator) -> Tuple[Rows, int]:
    """The document with its other sentences replaced by those of another one, in order; more than one if short.

    It reads like a document, as shuffled sentences do not.
    """
    own = test_set.sentences[number].document
    drawn: List[int] = []
    while len(drawn) < len(test_set.documents[own]):
        document = int(generator.integers(len(test_set.documents) - 1))
        drawn += sentences_of(test_set.documents[document + (document >= own)])
    return _replaced(test_set, number, drawn)


def _replaced(test_set: TestSet, number: int, drawn: List[int]) -> Tuple[Rows, int]:
    rows, place = true(test_set, number, np.random.default_rng(0))
    others = iter(drawn)
    shown = [row if row < 0 or row == number else next(others) for row in rows]
    return shown, place


PROBES: Dict[str, Probe] = {"true": true, "shuffled": shuffled, "random-document": random_document, "empty": empty}


def check_probes(test_set: TestSet) -> None:
    """Raises :class:`InputError` for a test set without documents to draw false context from."""
    if len(test_set.documents) < 2:
        raise InputError("the test set is one document; false context comes from others: give several")
