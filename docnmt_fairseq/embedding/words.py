"""Words: their vectors, from text files or a checkpoint, and their lookup in sentences."""

import logging
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np
from tqdm import tqdm

from docnmt_fairseq.boundaries import PARAGRAPH, is_boundary
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import join_subwords
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: distinct words.
        vectors: [V, d] float32.
    """

    words: List[str]
    vectors: np.ndarray


def read_text_vectors(path: PathLike) -> WordVectors:
    """Reads a text file with a word and its numbers per line, separated by spaces; words may contain spaces.

    A first line of two integers is a header. The first vector of a repeated word is used.
    """
    vectors: Dict[str, np.ndarray] = {}
    width = repeated = 0
    lines = tqdm(read_lines(path, strip=" \r\n"), desc=str(path), unit=" vectors", disable=None)
    for number, line in enumerate(lines, start=1):
        fields = line.split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            width = int(fields[1])
            continue
        width = width or len(fields) - 1
        if len(fields) <= width:
            raise InputError.at(path, number, f"expected a word and {width} numbers")
        word = " ".join(fields[:-width])
        repeated += word in vectors
        vectors.setdefault(word, np.array(fields[-width:], dtype=np.float32))
    if repeated:
        logger.warning(f"{path}: {repeated:,} repeated words; their first vectors are used")
    return WordVectors(list(vectors), np.stack(list(vectors.values())))


def read_checkpoint_vectors(path: PathLike, data: Path) -> WordVectors:
    """Reads the source embeddings of a trained model, without special symbols and ``<p>``."""
    from docnmt_fairseq.checkpoints import load_ensemble

    ensemble = load_ensemble(path, data=data)
    embeddings = ensemble.model.encoder.embed_tokens.weight.detach().float().numpy()
    dictionary = ensemble.dictionaries[0]
    kept = [n for n in range(dictionary.nspecial, len(dictionary)) if dictionary.symbols[n] != PARAGRAPH]
    return WordVectors([dictionary.symbols[number] for number in kept], embeddings[kept])


CHUNK = 10_000  # sentences


@dataclass(frozen=True)
class Words:
    """Packed words of sentences.

    Attributes:
        ids: [words] word numbers; unknown words have the size of the vocabulary.
        lengths: [S] number of words of each sentence.
    """

    ids: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Words":
        """Packs sentences."""
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        return cls(np.fromiter(chain.from_iterable(sentences), dtype=np.int64, count=int(lengths.sum())), lengths)

    def every(self, stride: int, first: int) -> "Words":
        """Returns every ``stride``-th sentence, starting with number ``first``."""
        chosen = np.zeros(len(self.lengths), dtype=bool)
        chosen[first::stride] = True
        return Words(self.ids[np.repeat(chosen, self.lengths)], self.lengths[chosen])


class Vocabulary:
    """Words that have vectors.

    Args:
        words: words by number.
        lowercase: lowercase text before looking it up.
        phrases: a word that contains ``_`` or spaces also matches several tokens.
        remove_bpe: subwords of the text to join, e.g. ``sentencepiece``; None: keep them.
    """

    def __init__(
        self, words: Sequence[str], lowercase: bool = False, phrases: bool = False, remove_bpe: Optional[str] = None
    ):
        self.number = {word: number for number, word in enumerate(words)}
        self.unknown = len(words)
        self.lowercase = lowercase
        self.remove_bpe = remove_bpe
        self.phrases: Dict[str, int] = {}
        self.first_tokens: Set[str] = set()  # of phrases
        self.longest = 1
        for number, word in enumerate(words if phrases else ()):
            parts = word.replace("_", " ").split()
            if len(parts) > 1:
                self.phrases.setdefault(" ".join(parts), number)
                self.first_tokens.add(parts[0])
                self.longest = max(self.longest, len(parts))

    def __len__(self) -> int:
        return self.unknown

    def encode(self, sentences: Iterable[str]) -> Words:
        """Returns the words of sentences of space-separated tokens."""
        return Words.of([self._numbers(sentence) for sentence in sentences])

    def encode_files(self, paths: Iterable[PathLike]) -> Iterator[Words]:
        """Yields the words of delimited text in chunks, without marks."""
        files = (tqdm(read_lines(path), desc=str(path), unit=" lines", disable=None) for path in paths)
        sentences = (line for file in files for line in file if not is_boundary(line))
        while chunk := list(islice(sentences, CHUNK)):
            yield self.encode(chunk)

    def of_tokens(self, symbols: Sequence[str]) -> Callable[[Sequence[np.ndarray]], Words]:
        """Returns the function from sentences of dictionary indices, with end of sentence, to their words.

        Indices are mapped directly if each word is one symbol; otherwise the text is looked up.
        """

        def by_text(sentences: Sequence[np.ndarray]) -> Words:
            return self.encode(" ".join([symbols[token] for token in tokens[:-1].tolist()]) for tokens in sentences)

        def by_number(sentences: Sequence[np.ndarray]) -> Words:
            lengths = np.array([len(tokens) - 1 for tokens in sentences], dtype=np.int64)
            return Words(number[np.concatenate([tokens[:-1] for tokens in sentences])], lengths)

        if self.phrases or self.remove_bpe is not None:
            return by_text
        words = (symbol.lower() if self.lowercase else symbol for symbol in symbols)
        number = np.array([self.number.get(word, self.unknown) for word in words])
        return by_number

    def _numbers(self, sentence: str) -> List[int]:
        if self.remove_bpe is not None:
            sentence = join_subwords(sentence, self.remove_bpe)
        tokens = (sentence.lower() if self.lowercase else sentence).split()
        number, unknown = self.number, self.unknown
        if self.phrases and not self.first_tokens.isdisjoint(tokens):
            return self.segment(tokens)
        return [number.get(token, unknown) for token in tokens]

    def segment(self, tokens: Sequence[str]) -> List[int]:
        """Segments a sentence into the fewest words, phrases and unknown tokens ([Z] sec. 4.1.1).

        Ties: fewest unknown tokens, then the longest first, second, … part. Dynamic programming from the end.
        """
        length = len(tokens)
        best: List[Tuple[int, int]] = [(0, 0)] * (length + 1)  # parts and unknown tokens from each token on
        taken: List[Tuple[int, int]] = [(0, 0)] * length  # number and tokens of the first part
        for start in range(length - 1, -1, -1):
            number = self.number.get(tokens[start], self.unknown)
            parts, unknown = best[start + 1]
            best[start], taken[start] = (parts + 1, unknown + (number == self.unknown)), (number, 1)
            if tokens[start] not in self.first_tokens:
                continue
            for size in range(2, min(self.longest, length - start) + 1):
                phrase = self.phrases.get(" ".join(tokens[start : start + size]))
                parts, unknown = best[start + size]
                if phrase is not None and (parts + 1, unknown) <= best[start]:
                    best[start], taken[start] = (parts + 1, unknown), (phrase, size)
        numbers, start = [], 0
        while start < length:
            numbers.append(taken[start][0])
            start += taken[start][1]
        return numbers
