"""Data-bins: token ids of delimited lines in the memory-mapped files of fairseq-preprocess, byte for byte."""

import json
import struct
from collections import Counter
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

import numpy as np
from tqdm import tqdm

from docnmt_fairseq.boundaries import BOUNDARIES, DOCUMENT, PARAGRAPH
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.subwords import load_subword_model
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import PathLike, atomic_folder, atomic_path, write_json

if TYPE_CHECKING:
    from fairseq.data import Dictionary


DATA_BIN = "data-bin"
LANGUAGE_TOKENS = "language-tokens.json"


class Items(NamedTuple):
    """Token ids of lines.

    Attributes:
        tokens: [T] token ids of all lines, each line with an end of sentence.
        sizes: [lines] number of tokens of each line.
    """

    tokens: np.ndarray
    sizes: np.ndarray

    @classmethod
    def with_ends(cls, lengths: np.ndarray, ids: np.ndarray, end: int) -> "Items":
        """Items from the ids of all lines and their number per line; adds the end of sentence ``end``."""
        sizes = lengths + 1
        ends = np.cumsum(sizes) - 1
        tokens = np.full(int(sizes.sum()), end, dtype=np.int64)
        inner = np.ones(len(tokens), dtype=bool)
        inner[ends] = False
        tokens[inner] = ids
        return cls(tokens, sizes)


class DictionaryNumbering:
    """Maps lines of tokens to items like ``Dictionary.encode_line``, many lines at a time."""

    def __init__(self, dictionary: "Dictionary"):
        self._end, self._unknown = dictionary.eos(), dictionary.unk()
        self._ids: Dict[str, int] = dictionary.indices

    def __call__(self, lines: Iterable[str]) -> Items:
        """Returns the items of lines of tokens separated by white space."""
        words = [line.split() for line in lines]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        get, unknown = self._ids.get, self._unknown
        ids = (get(word, unknown) for word in chain.from_iterable(words))
        return Items.with_ends(lengths, np.fromiter(ids, np.int64, int(lengths.sum())), self._end)


class SentencePieceNumbering:
    """Maps delimited lines to the items of their pieces without creating the pieces as strings.

    Sentences with the unknown piece, whose text may be in the dictionary, or with pieces that contain white space,
    which are several words, are looked up as text.
    """

    def __init__(self, model: PathLike, dictionary: "Dictionary", token: Optional[str] = None, workers: int = 1):
        self._processor = load_subword_model(model)
        self._by_text = DictionaryNumbering(dictionary)
        self._workers, self._end = workers, dictionary.eos()
        pieces = [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]
        # Ids of the model, followed by those of the dictionary, to ids of the dictionary.
        self._table = np.concatenate([[dictionary.index(piece) for piece in pieces], np.arange(len(dictionary))])
        self._offset = len(pieces)
        self._marks = {mark: self._of_text(mark) for mark in (DOCUMENT, *BOUNDARIES)}
        self._prefix = [] if token is None else self._of_text(token)
        self._needs_text = np.array([piece.split() != [piece] for piece in pieces])
        self._needs_text[self._processor.unk_id()] = True

    def __call__(self, lines: Sequence[str], path: PathLike, first: int) -> Items:
        """Returns the items of lines.

        Args:
            lines: sentences and boundaries.
            path: file of the lines, for error messages.
            first: line number of the first line.
        """
        encoded = iter(self._encode([line for line in lines if line not in self._marks]))
        numbers = [self._marks[line] if line in self._marks else next(encoded) for line in lines]
        lengths = np.fromiter(map(len, numbers), np.int64, len(numbers))
        ids = self._table[np.fromiter(chain.from_iterable(numbers), np.int64, int(lengths.sum()))]
        paragraph = self._table[self._marks[PARAGRAPH]].tolist()
        for short in np.flatnonzero(lengths <= len(self._prefix) + 1).tolist():
            left = self._table[numbers[short][len(self._prefix) :]].tolist()
            if lines[short] not in self._marks and left in ([], paragraph):
                raise InputError.at(path, first + short, "nothing is left of this sentence in pieces; remove it")
        return Items.with_ends(lengths, ids, self._end)

    def _of_text(self, text: str) -> List[int]:
        """Returns the table positions of the tokens of a text."""
        return (self._by_text([text]).tokens[:-1] + self._offset).tolist()

    def _encode(self, sentences: List[str]) -> List[List[int]]:
        """Returns the table positions of the tokens of each sentence."""
        if not sentences:
            return []
        found: List[List[int]] = self._processor.encode(sentences, out_type=int, num_threads=self._workers)
        ends = np.cumsum(np.fromiter(map(len, found), np.int64, len(found)))
        special = np.flatnonzero(self._needs_text[np.fromiter(chain.from_iterable(found), np.int64, int(ends[-1]))])
        for number in np.unique(np.searchsorted(ends, special, side="right")).tolist():
            found[number] = self._of_text(" ".join(self._processor.encode(sentences[number], out_type=str)))
        return [self._prefix + one for one in found] if self._prefix else found


class ItemWriter(AbstractContextManager["ItemWriter"]):
    """Writes ``PREFIX.bin`` incrementally, and ``PREFIX.idx`` when the block ends without an error.

    Args:
        prefix: path of both files without their suffix.
        symbols: size of the dictionary, which determines the integer type.
    """

    def __init__(self, prefix: Path, symbols: int):
        from fairseq.data.indexed_dataset import best_fitting_int_dtype

        self.prefix = prefix
        self.type = np.dtype(best_fitting_int_dtype(symbols))
        self.lines = self.tokens = 0
        self._sizes: List[np.ndarray] = []
        self._file: BinaryIO = open(f"{prefix}.bin", "wb")  # noqa: SIM115  (closed below)

    def add(self, items: Items) -> None:
        """Appends items."""
        self._file.write(items.tokens.astype(self.type).tobytes())
        self._sizes.append(items.sizes.astype(np.int32))
        self.lines += len(items.sizes)
        self.tokens += len(items.tokens)

    def __exit__(self, kind: object, *error: object) -> None:
        from fairseq.data.indexed_dataset import MMapIndexedDataset, _dtype_header_code

        self._file.close()
        if kind is not None:
            return
        with open(f"{self.prefix}.idx", "wb") as stream:
            stream.write(MMapIndexedDataset.Index._HDR_MAGIC)
            stream.write(struct.pack("<QBQ", 1, _dtype_header_code(self.type.type), self.lines))
            for sizes in self._sizes:
                stream.write(sizes.tobytes())
            start = 0
            for sizes in self._sizes:
                lengths = sizes.astype(np.int64) * self.type.itemsize
                ends = start + np.cumsum(lengths)
                stream.write((ends - lengths).tobytes())
                start = int(ends[-1]) if len(ends) else start


def write_data_bin(
    target: Path,
    dictionaries: Mapping[str, "Dictionary"],
    splits: Mapping[str, Iterator[Sequence[Items]]],
    language_tokens: Mapping[str, Optional[str]],
) -> Dict[str, List[int]]:
    """Writes a data-bin and returns the number of tokens of each side of each split."""
    pair = "-".join(list(dictionaries)[:2])
    tokens: Dict[str, List[int]] = {}
    with atomic_folder(target) as folder:
        for side, dictionary in dictionaries.items():
            dictionary.save(str(folder / f"dict.{side}.txt"))
        for split, batches in splits.items():
            with ExitStack() as stack:
                writers = [
                    stack.enter_context(ItemWriter(folder / f"{split}.{pair}.{side}", len(dictionary)))
                    for side, dictionary in dictionaries.items()
                ]
                for batch in batches:
                    for writer, items in zip(writers, batch):
                        writer.add(items)
            tokens[split] = [writer.tokens for writer in writers]
        write_language_tokens(folder, language_tokens)
    return tokens


def write_language_tokens(data_bin: Path, tokens: Mapping[str, Optional[str]]) -> None:
    """Writes the language tokens that the sentences of each side start with, if any side has one."""
    present = {side: token for side, token in tokens.items() if token is not None}
    if present:
        write_json(data_bin / LANGUAGE_TOKENS, present, sort_keys=False)


def read_language_tokens(data_bin: Path) -> Dict[str, str]:
    """Returns the language token of each side that has one."""
    path = data_bin / LANGUAGE_TOKENS
    if not path.is_file():
        return {}
    tokens: Dict[str, str] = json.loads(path.read_bytes())
    return tokens


# --- Dictionaries ---


def dictionary_from_model(model: PathLike, path: PathLike, symbols: Sequence[str] = ()) -> None:
    """Writes the dictionary of a SentencePiece model in the order of its pieces; all counts are 1."""
    from fairseq.data import Dictionary

    processor = load_subword_model(model)
    dictionary = Dictionary()
    for index in range(processor.get_piece_size()):
        piece = processor.id_to_piece(index)
        # fairseq's special symbols replace those of the model, which may include <pad>.
        if not (processor.is_control(index) or processor.is_unknown(index) or piece in dictionary):
            dictionary.add_symbol(piece)
    _save(dictionary, path, symbols)


def dictionary_from_text(
    texts: Sequence[PathLike],
    path: PathLike,
    symbols: Sequence[str] = (),
    *,
    min_count: int = 1,
    max_words: int = -1,
) -> None:
    """Writes the dictionary of segmented delimited files.

    Args:
        texts: training text of one side, or of both sides for a joint dictionary.
        path: file to write.
        symbols: additional symbols, however rare.
        min_count: rarer words are left out.
        max_words: size of the dictionary including special symbols; -1: unlimited.
    """
    from fairseq.data import Dictionary

    counts: Counter[str] = Counter()
    for text in texts:
        for line in tqdm(read_lines(text), desc=f"models/{Path(path).name}", unit=" lines", disable=None):
            counts.update(line.split())
    dictionary = Dictionary()
    for word, count in counts.items():
        dictionary.add_symbol(word, count)
    dictionary.finalize(threshold=min_count, nwords=max_words, padding_factor=1)
    _save(dictionary, path, symbols)


@contextmanager
def dictionary_errors(path: PathLike) -> Iterator[None]:
    """Context in which a dictionary is loaded: errors of fairseq become an :class:`InputError` that names the file."""
    try:
        yield
    except Exception as error:  # fairseq raises built-in exceptions of many kinds
        raise InputError(f"{path}: cannot be loaded as a dictionary: {first_line(error)}") from error


def _save(dictionary: "Dictionary", path: PathLike, symbols: Sequence[str]) -> None:
    for symbol in (PARAGRAPH, *symbols):
        if symbol not in dictionary:
            dictionary.add_symbol(symbol)
    with atomic_path(path) as temporary:
        dictionary.save(str(temporary))
