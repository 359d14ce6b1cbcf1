"""From sentences to the numbers of their words: what counts as a word is the same in fitting and in use."""

from dataclasses import dataclass
from itertools import chain
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import join_subwords
from docnmt_fairseq.files import PathLike
from docnmt_fairseq.marks import is_mark

CHUNK = 10_000  # sentences at a time


@dataclass(frozen=True)
class Words:
    """The words of some sentences, one sentence after another.

    Attributes:
        ids: [words] their numbers; that of an unknown word is the size of the vocabulary.
        lengths: [S] words of each sentence.
    """

    ids: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "Words":
        """Sentences of numbers, packed."""
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        return cls(np.fromiter(chain.from_iterable(sentences), dtype=np.int64, count=int(lengths.sum())), lengths)


class Vocabulary:
    """The words that have vectors.

    Args:
        words: number i is word i.
        lowercase: text is lowercased before it is looked up.
        phrases: a word with ``_`` or spaces inside stands for several tokens of the text, too.
        remove_bpe: how fairseq joins the text's subwords to words, e.g. ``sentencepiece``; None: they are left apart.
    """

    def __init__(
        self, words: Sequence[str], lowercase: bool = False, phrases: bool = False, remove_bpe: Optional[str] = None
    ):
        self.number = {word: number for number, word in enumerate(words)}
        self.unknown = len(words)
        self.lowercase = lowercase
        self.remove_bpe = remove_bpe
        self.phrases: Dict[str, int] = {}
        self.openers: Set[str] = set()  # first tokens of phrases
        self.longest = 1
        for number, word in enumerate(words if phrases else ()):
            parts = word.replace("_", " ").split()
            if len(parts) > 1:
                self.phrases.setdefault(" ".join(parts), number)
                self.openers.add(parts[0])
                self.longest = max(self.longest, len(parts))

    def __len__(self) -> int:
        return self.unknown

    def encode(self, sentences: Iterable[str]) -> Words:
        """The words of sentences, tokens with spaces between."""
        return Words.of([self._numbers(sentence) for sentence in sentences])

    def encode_files(self, paths: Iterable[PathLike]) -> Iterator[Words]:
        """Yields the words of delimited text, some sentences at a time, marks left out.

        Raises:
            InputError: a file cannot be read.
        """
        sentences: List[str] = []
        for path in paths:
            for line in read_lines(path):
                if is_mark(line):
                    continue
                sentences.append(line)
                if len(sentences) == CHUNK:
                    yield self.encode(sentences)
                    sentences = []
        if sentences:
            yield self.encode(sentences)

    def of_tokens(self, symbols: Sequence[str]) -> Callable[[Sequence[np.ndarray]], Words]:
        """The function from sentences of a dictionary's numbers, end of sentence included, to their words.

        Where a word is a symbol, it looks numbers up by numbers; else it goes by way of the text.
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
        if self.phrases and not self.openers.isdisjoint(tokens):
            return self.segment(tokens)
        return [number.get(token, unknown) for token in tokens]

    def segment(self, tokens: Sequence[str]) -> List[int]:
        """The fewest words, phrases and unknown tokens that a sentence can be read as ([Z] sec. 4.1.1).

        Among equally many, those with fewest unknown tokens; then those whose first, then second, … part is longest.
        By dynamic programming from the end.
        """
        ends = len(tokens)
        best: List[Tuple[int, int]] = [(0, 0)] * (ends + 1)  # parts, unknown ones, from each token on
        taken: List[Tuple[int, int]] = [(0, 0)] * ends  # number and tokens of the first part from there
        for start in range(ends - 1, -1, -1):
            number = self.number.get(tokens[start], self.unknown)
            parts, unknown = best[start + 1]
            best[start], taken[start] = (parts + 1, unknown + (number == self.unknown)), (number, 1)
            if tokens[start] not in self.openers:
                continue
            for length in range(2, min(self.longest, ends - start) + 1):
                phrase = self.phrases.get(" ".join(tokens[start : start + length]))
                parts, unknown = best[start + length]
                if phrase is not None and (parts + 1, unknown) <= best[start]:
                    best[start], taken[start] = (parts + 1, unknown), (phrase, length)
        numbers, start = [], 0
        while start < ends:
            numbers.append(taken[start][0])
            start += taken[start][1]
        return numbers
