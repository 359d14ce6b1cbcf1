"""Vocabularies and text of exports to Hugging Face's transformers."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

import numpy as np
from fairseq.data import Dictionary

from docnmt_fairseq.boundaries import PARAGRAPH
from docnmt_fairseq.hub.vocabulary import BIAS, UNUSED_BIAS

if TYPE_CHECKING:
    from docnmt_fairseq.corpus.pipeline import TextCodec
    from docnmt_fairseq.hub.sentence_level import SentenceTransformer

NLLB_CODE = re.compile("[a-z]{3}_[A-Z][a-z]{3}")  # language of NLLB-200
FAIRSEQ_NLLB = re.compile(f"__({NLLB_CODE.pattern})__")  # its token in fairseq


def hub_symbol(symbol: str) -> str:
    """Returns a symbol as on the hub: language tokens of NLLB without fairseq's underscores."""
    return FAIRSEQ_NLLB.sub(r"\1", symbol)


@dataclass(frozen=True)
class HubVocabularies:
    """Symbols of both sides in the order of the exported model.

    Attributes:
        symbols: source and target symbols by row, with the hub's language tokens.
        rows: index of each symbol in our dictionary.
        shared: one vocabulary and one embedding table for both sides.
    """

    symbols: Tuple[List[str], ...]
    rows: Tuple[List[int], ...]
    shared: bool

    @classmethod
    def of(cls, transformer: "SentenceTransformer") -> "HubVocabularies":
        """Returns the vocabularies of a model.

        ``docnmt import`` adds <s> and <p> if a model does not have them, unused in the source (zero embedding) and
        unreachable in the target (bias). These are left out. MarianMT has its own order, others have fairseq's.
        """
        dictionaries = (transformer.model.encoder.dictionary, transformer.model.decoder.dictionary)
        source, target = (transformer.array(f"{side}.embed_tokens.weight") for side in ("encoder", "decoder"))
        shared = dictionaries[0].symbols == dictionaries[1].symbols and np.array_equal(source, target)
        unused = transformer.array(BIAS) < UNUSED_BIAS if transformer.has(BIAS) else np.zeros(len(target), bool)
        unused_source = unused if shared else np.all(source == 0, axis=1)
        rows = [_kept(*side) for side in zip(dictionaries, (unused_source, unused))]
        if transformer.position_kind == "marian":
            last = min(map(len, rows)) - 1  # padding has the same row on both sides
            rows = [_marian_order(dictionary, kept, last) for dictionary, kept in zip(dictionaries, rows)]
        symbols = [[hub_symbol(dictionary[row]) for row in kept] for dictionary, kept in zip(dictionaries, rows)]
        return cls(tuple(symbols), tuple(rows), shared)

    def ids(self, side: int) -> Dict[str, int]:
        """Returns the rows of the source (0) or target (1) symbols."""
        return {symbol: number for number, symbol in enumerate(self.symbols[side])}


def _kept(dictionary: Dictionary, unused: np.ndarray) -> List[int]:
    added = {dictionary.bos_word, PARAGRAPH}
    return [row for row, symbol in enumerate(dictionary.symbols) if not (symbol in added and unused[row])]


def _marian_order(dictionary: Dictionary, rows: List[int], last: int) -> List[int]:
    """Returns </s>, <unk>, pieces, and <pad> at ``last``."""
    first = [dictionary.eos(), dictionary.unk()]
    found = [*first, *(row for row in rows if row not in (*first, dictionary.pad()))]
    return [*found[:last], dictionary.pad(), *found[last:]]


@dataclass(frozen=True)
class HubText:
    """Steps from text to the symbols of a model.

    Attributes:
        vocabularies: symbols of the model.
        codec: text steps of the training data.
    """

    vocabularies: HubVocabularies
    codec: "TextCodec"

    @property
    def models(self) -> List[Path]:
        """Returns the SentencePiece models of source and target."""
        return [self.codec.data / "models" / str(pipeline.subword_file) for pipeline in self.codec.pipelines]

    @property
    def tokens(self) -> Tuple[Optional[str], Optional[str]]:
        """Returns the language tokens of source and target."""
        source, target = (pipeline.language_token for pipeline in self.codec.pipelines)
        return source and hub_symbol(source), target and hub_symbol(target)
