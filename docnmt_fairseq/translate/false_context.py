"""Translations with false context: what a model makes of a sentence among sentences of other documents.

Sentences change places over all documents, are translated, and their translations go back. Each sentence has another
document around it, of the shape of a true one, at the cost of translating once; a model that gains from context loses
what it gains, and more if false context leads it astray.
"""

import logging
from typing import Callable, List, Sequence

import numpy as np

from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import is_mark, levels_ended
from docnmt_fairseq.translate.files import Translator
from docnmt_fairseq.translate.lines import TranslatedLine

ROUNDS = 100  # of moving what still stands beside a sentence of its own document

logger = logging.getLogger(__name__)


class ShuffledContext:
    """A translator that shows every sentence among sentences of other documents.

    Args:
        translator: that translates.
        seed: of the places.

    Raises:
        InputError: a seed below 0.
    """

    def __init__(self, translator: Translator, seed: int = 1):
        if seed < 0:
            raise InputError(f"--seed {seed}: at least 0")
        self.translator, self.seed = translator, seed

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str],
        empty_lines: str,
        progress: Callable[[int], object],
    ) -> List[List[TranslatedLine]]:
        """See :meth:`~docnmt_fairseq.translate.translator.DocumentTranslator.translate_lines`.

        Raises:
            InputError: all texts together are one document.
        """
        places = [(i, j) for i, lines in enumerate(documents) for j, line in enumerate(lines) if _is_sentence(line)]
        owners = owners_of(documents, empty_lines)
        order = among_others(owners, self.seed)
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


def owners_of(texts: Sequence[Sequence[str]], empty_lines: str) -> np.ndarray:
    """The document that each sentence of some texts is of, [sentences].

    Args:
        texts: a sentence a line.
        empty_lines: what they end, a document or a paragraph.
    """
    owners, document = [], 0
    for lines in texts:
        for line in lines:
            if _is_sentence(line):
                owners.append(document)
            elif not levels_ended(normalise(line)) and empty_lines == "document":
                document += 1
        document += 1
    return np.array(owners, dtype=np.int64)


def _is_sentence(line: str) -> bool:
    return not is_mark(normalise(line))


def among_others(owners: np.ndarray, seed: int) -> np.ndarray:
    """The sentence that each place gets, [sentences], such that none stands beside one of its own document.

    Where documents have more sentences than there are documents, that is impossible for some; they are counted in a
    warning.

    Args:
        owners: [sentences] the document of each sentence, and of each place.
        seed: of the places.

    Raises:
        InputError: there is one document only.
    """
    if len(set(owners.tolist())) < 2:
        raise InputError("--context shuffled: the text is one document; false context comes from others: give several")
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(owners))
    for _ in range(ROUNDS):
        crowded = _crowded(owners, order)
        if not len(crowded):
            return order
        moved = np.unique(np.concatenate([crowded, generator.integers(len(order), size=len(crowded))]))
        order[moved] = order[generator.permutation(moved)]
    left = len(_crowded(owners, order))
    if left:
        logger.warning(f"{left:,} of {len(order):,} sentences stand beside one of their own document: it is too long")
    return order


def _crowded(owners: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The places whose sentence stands in its own document, or behind another one of its own in a document."""
    documents = int(owners.max()) + 1
    pairs = owners * documents + owners[order]
    _, first = np.unique(pairs, return_index=True)
    again = np.ones(len(order), dtype=bool)
    again[first] = False
    return np.flatnonzero(again | (owners == owners[order]))
