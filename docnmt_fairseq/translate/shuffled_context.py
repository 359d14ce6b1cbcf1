"""Translation with shuffled context, to measure what a model gains from the true context.

Sentences are permuted over all documents, translated, and their translations put back. Every sentence gets the context
of another document of realistic shape, at the cost of translating once.
"""

import logging
from typing import Callable, List, Sequence

import numpy as np

from docnmt_fairseq.boundaries import is_boundary, levels_ended
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.translate.lines import TranslatedLine
from docnmt_fairseq.translate.translate_files import Translator

MAX_ROUNDS = 100  # of moving sentences that are still next to one of their own document

logger = logging.getLogger(__name__)


class ShuffledContext:
    """Translator that shows every sentence among sentences of other documents.

    Args:
        translator: translator of lines.
        seed: seed of the permutation, at least 0.
    """

    def __init__(self, translator: Translator, seed: int = 1):
        self.translator, self.seed = translator, seed

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """Returns every line with its translations, made in the context of other documents."""
        places = [(i, j) for i, lines in enumerate(documents) for j, line in enumerate(lines) if _is_sentence(line)]
        order = shuffled_order(document_numbers(documents, empty_lines), self.seed)
        shown = [list(lines) for lines in documents]
        for (i, j), sentence in zip(places, order):
            from_text, from_line = places[sentence]
            shown[i][j] = documents[from_text][from_line]
        translations = self.translator.translate_lines(shown, names, empty_lines, progress)
        restored = [list(lines) for lines in translations]
        for (i, j), sentence in zip(places, order):
            to_text, to_line = places[sentence]
            restored[to_text][to_line] = translations[i][j]
        return restored


def document_numbers(texts: Sequence[Sequence[str]], empty_lines: str) -> np.ndarray:
    """Returns the document of each sentence of some texts, [sentences]."""
    numbers, document = [], 0
    for lines in texts:
        for line in lines:
            if _is_sentence(line):
                numbers.append(document)
            elif not levels_ended(normalise(line)) and empty_lines == "document":
                document += 1
        document += 1
    return np.array(numbers, dtype=np.int64)


def _is_sentence(line: str) -> bool:
    return not is_boundary(normalise(line))


def shuffled_order(owners: np.ndarray, seed: int) -> np.ndarray:
    """Returns a permutation [sentences] that puts every sentence into another document, no two of one together.

    Logs the number of sentences for which that is impossible: a document has more sentences than there are documents.

    Args:
        owners: [sentences] document of each sentence, and of each place.
        seed: seed of the permutation.
    """
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(owners))
    for _ in range(MAX_ROUNDS):
        crowded = _crowded(owners, order)
        if not len(crowded):
            return order
        moved = np.unique(np.concatenate([crowded, generator.integers(len(order), size=len(crowded))]))
        order[moved] = order[generator.permutation(moved)]
    left = len(_crowded(owners, order))
    if left:
        logger.warning(
            f"{left:,} of {len(order):,} sentences have a sentence of their own document as context: it has "
            "more sentences than there are documents"
        )
    return order


def _crowded(owners: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Returns the places with a sentence of their own document, or a second sentence of one document."""
    documents = int(owners.max(initial=0)) + 1
    pairs = owners * documents + owners[order]
    _, first = np.unique(pairs, return_index=True)
    again = np.ones(len(order), dtype=bool)
    again[first] = False
    return np.flatnonzero(again | (owners == owners[order]))
