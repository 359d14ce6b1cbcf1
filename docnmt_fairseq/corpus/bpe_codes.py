"""Byte pair encoding by a list of merges ("codes"): subword-nmt's, learnt here, and those that released models bring.

Sennrich, Haddow and Birch (2016). A word's pieces but the last end in ``@@``.
"""

import importlib.util
import io
from functools import lru_cache
from itertools import pairwise
from typing import Dict, Iterable, List, Sequence, Tuple

from docnmt_fairseq.corpus.files import PathLike, atomic_write_bytes, read_lines
from docnmt_fairseq.corpus.transform import BatchFunction
from docnmt_fairseq.errors import InputError

JOINER = "@@"
END_OF_WORD = "</w>"
WORDS = 100_000  # that are remembered with their pieces

Pair = Tuple[str, str]


def missing_library() -> str:
    """What to install so that merges can be learnt; empty if they can."""
    return "" if importlib.util.find_spec("subword_nmt") else "docnmt_fairseq[bpe]"


def learn_codes(sentences: Iterable[str], codes: PathLike, merges: int) -> None:
    """Writes the merges that subword-nmt learns; the same sentences give the same.

    Args:
        sentences: words with spaces between.
        codes: file to write.
        merges: how many at most; a pair that comes once is not merged.

    Raises:
        InputError: subword-nmt is not installed, or there is no pair to merge.
    """
    if missing_library():
        raise InputError(f"--subwords subword-nmt: run pip install '{missing_library()}'")
    from subword_nmt.learn_bpe import learn_bpe

    content = io.StringIO()
    try:
        learn_bpe(sentences, content, merges)
    except ValueError as error:
        raise InputError("--subwords subword-nmt: no word of the training text has two characters") from error
    atomic_write_bytes(codes, content.getvalue().encode())


def bpe_encoder(codes: PathLike) -> BatchFunction:
    """The function from sentences of words to their pieces with spaces between.

    Args:
        codes: a merge a line, the most frequent first: two symbols, and perhaps a count; a line ``#version: 0.2`` may
            come first.

    Raises:
        InputError: a line is no merge, or the file is of the version without one, in which words end otherwise.
    """
    ranks = _read(codes)

    @lru_cache(WORDS)
    def pieces(word: str) -> str:
        return f"{JOINER} ".join(_split(word, ranks))

    return lambda sentences: [" ".join(map(pieces, sentence.split())) for sentence in sentences]


def _read(codes: PathLike) -> Dict[Pair, int]:
    """The rank of every merge."""
    ranks: Dict[Pair, int] = {}
    for number, line in enumerate(read_lines(codes, strip=" \r\n"), start=1):  # a symbol may be another white space
        if number == 1 and line.startswith("#version:"):
            if line.split(":")[1].strip() != "0.2":
                raise InputError.at(codes, number, f"{line}: only version 0.2 of these codes can be read")
            continue
        fields = line.split(" ")
        if len(fields) not in (2, 3) or not all(fields[:2]):
            raise InputError.at(codes, number, "not a merge of two symbols; give the model's BPE codes")
        ranks.setdefault((fields[0], fields[1]), len(ranks))
    if not any(END_OF_WORD in right for _, right in ranks):
        raise InputError(f"{codes}: no merge at the end of a word ({END_OF_WORD}); give the model's BPE codes")
    return ranks


def _split(word: str, ranks: Dict[Pair, int]) -> Sequence[str]:
    """The pieces of a word: the merge of the lowest rank is made wherever it can be, until none is left."""
    symbols: List[str] = [*word[:-1], word[-1] + END_OF_WORD]
    while len(symbols) > 1:
        best = min(pairwise(symbols), key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        merged: List[str] = []
        for symbol in symbols:
            if merged and (merged[-1], symbol) == best:
                merged[-1] += symbol
            else:
                merged.append(symbol)
        symbols = merged
    symbols[-1] = symbols[-1].removesuffix(END_OF_WORD)
    return symbols
