"""From a fairseq dictionary back to the rows of Hugging Face's embeddings."""

from dataclasses import dataclass
from typing import Dict, List, Tuple

import numpy as np
from fairseq.data import Dictionary

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.export.sentence_level import SIDES, SentenceTransformer
from docnmt_fairseq.pretrained.vocabulary import NEVER

NO_SHARE = NEVER * 0.8  # a bias that leaves no share of the probabilities; training moves what was NEVER a little
BIAS = "decoder.output_projection.bias"


@dataclass(frozen=True)
class HubVocabularies:
    """The symbols of both sides in the hub's order.

    Attributes:
        symbols: of source and target, by row.
        rows: the number in our dictionary of each.
        shared: whether both sides have one vocabulary and one table of embeddings.
    """

    symbols: Tuple[List[str], List[str]]
    rows: Tuple[List[int], List[int]]
    shared: bool

    def ids(self, side: int) -> Dict[str, int]:
        """The numbers of the symbols of the source (0) or target (1)."""
        return {symbol: number for number, symbol in enumerate(self.symbols[side])}


def vocabularies_of(transformer: SentenceTransformer) -> HubVocabularies:
    """The vocabularies of a model.

    ``docnmt import`` adds <s> and <p> where a released model has none, so that no sentence holds them and no
    translation can: without an embedding in the source, with a bias that nothing overcomes in the target. They are
    left out again. MarianMT has its own order, all others fairseq's.
    """
    dictionaries = (transformer.model.encoder.dictionary, transformer.model.decoder.dictionary)
    source, target = (transformer.array(f"{side}.embed_tokens.weight") for side in SIDES)
    shared = dictionaries[0].symbols == dictionaries[1].symbols and np.array_equal(source, target)
    bias = transformer.array(BIAS) if transformer.has(BIAS) else np.zeros(len(target))
    of_target = bias < NO_SHARE
    of_source = of_target if shared else np.all(source == 0, axis=1)
    kept = [_kept(dictionaries[0], of_source), _kept(dictionaries[1], of_target)]
    if transformer.sinusoids == "marian":
        last = min(map(len, kept)) - 1  # the padding has one number on both sides
        kept = [_in_marians_order(dictionary, rows, last) for dictionary, rows in zip(dictionaries, kept)]
    symbols = [[dictionary[row] for row in rows] for dictionary, rows in zip(dictionaries, kept)]
    return HubVocabularies((symbols[0], symbols[1]), (kept[0], kept[1]), shared)


def _kept(dictionary: Dictionary, unused: np.ndarray) -> List[int]:
    """The numbers of the symbols that the hub's model has."""
    added = {dictionary.bos_word, PARAGRAPH}
    return [row for row, symbol in enumerate(dictionary.symbols) if not (symbol in added and unused[row])]


def _in_marians_order(dictionary: Dictionary, rows: List[int], last: int) -> List[int]:
    """</s>, <unk>, the pieces, and <pad> at ``last``."""
    first = [dictionary.eos(), dictionary.unk()]
    rest = [row for row in rows if row not in (*first, dictionary.pad())]
    found = [*first, *rest]
    return [*found[:last], dictionary.pad(), *found[last:]]
