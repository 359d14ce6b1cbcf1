"""Byte pair encoding with a list of merges ("codes") in the format of subword-nmt (Sennrich et al., 2016)."""

import io
from functools import lru_cache
from itertools import pairwise
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike, write_bytes

JOINER = "@@"  # end of every subword of a word but the last
END_OF_WORD = "</w>"
CACHED_WORDS = 100_000

Pair = Tuple[str, str]


def learn_codes(sentences: Iterable[str], codes: PathLike, merges: int) -> None:
    """Learns merges with subword-nmt and writes them; deterministic.

    Args:
        sentences: words separated by spaces.
        codes: file to write.
        merges: maximum number of merges; pairs that occur once are not merged.

    Raises:
        InputError: subword-nmt is not installed, or there is no pair to merge.
    """
    try:
        from subword_nmt.learn_bpe import learn_bpe
    except ImportError as error:
        raise InputError("--subwords subword-nmt: run pip install 'docnmt_fairseq[bpe]'") from error
    content = io.StringIO()
    try:
        learn_bpe(sentences, content, merges)
    except ValueError as error:
        raise InputError("--subwords subword-nmt: no word of the training text has two characters") from error
    write_bytes(codes, content.getvalue().encode())


def bpe_encoder(codes: PathLike) -> Callable[[List[str]], List[str]]:
    """Returns the function from sentences of words to subwords separated by spaces.

    Args:
        codes: one merge per line, most frequent first: two symbols and an optional count; the first line may be
            ``#version: 0.2``.

    Raises:
        InputError: a line is not a merge, or the file is of version 0.1, which marks the ends of words differently.
    """
    ranks = _read(codes)

    @lru_cache(CACHED_WORDS)
    def subwords(word: str) -> str:
        return f"{JOINER} ".join(_split(word, ranks))

    return lambda sentences: [" ".join(map(subwords, sentence.split())) for sentence in sentences]


def _read(codes: PathLike) -> Dict[Pair, int]:
    """Returns the rank of every merge."""
    ranks: Dict[Pair, int] = {}
    for number, line in enumerate(read_lines(codes, strip=" \r\n"), start=1):  # symbols may be other white space
        if number == 1 and line.startswith("#version:"):
            if line.split(":")[1].strip() != "0.2":
                raise InputError.at(codes, number, f"{line}: only version 0.2 is supported")
            continue
        fields = line.split(" ")
        if len(fields) not in (2, 3) or not all(fields[:2]):
            raise InputError.at(codes, number, "not a merge of two symbols; give the BPE codes of the model")
        ranks.setdefault((fields[0], fields[1]), len(ranks))
    if not any(END_OF_WORD in right for _, right in ranks):
        raise InputError(f"{codes}: no merge ends a word ({END_OF_WORD}); give the BPE codes of the model")
    return ranks


def _split(word: str, ranks: Dict[Pair, int]) -> Sequence[str]:
    """Splits a word into subwords: applies the merge of the lowest rank everywhere until none is left."""
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
