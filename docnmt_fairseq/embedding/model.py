"""Model of sentence vectors: fitted on a corpus, of which only word counts are kept; stored as ``.npz``."""

import io
import json
import logging
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Iterator, List, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from tqdm import tqdm

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.files import npy_on_disk, read_lines
from docnmt_fairseq.embedding import Settings
from docnmt_fairseq.embedding.methods import METHODS, Average
from docnmt_fairseq.embedding.words import CHUNK, Vocabulary, Words, WordVectors
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import PathLike, refuse_streams, write_bytes

FORMAT = 1
SAMPLE = 100_000  # sentences that the first component of a large corpus is computed from, spread over all of it

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SentenceEmbedding:
    """Sentence vectors; the vector of a sentence does not depend on other sentences.

    Attributes:
        words: distinct words.
        vectors: [V, d] float32.
        counts: [V] int64, in the corpus that the model was fitted on.
        learnt: [d] float32, fitted on the corpus: v_0 of ``ca-sem``, the component that ``sif`` removes.
        settings: settings.
    """

    words: List[str]
    vectors: np.ndarray
    counts: np.ndarray
    learnt: np.ndarray
    settings: Settings = Settings()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Vocabulary that text is looked up in."""
        return _vocabulary(self.words, self.settings)

    @cached_property
    def method(self) -> Average:
        """Method."""
        return METHODS[self.settings.method](self.settings.iterations, self.settings.smoothing)

    @cached_property
    def table(self) -> torch.Tensor:
        """Contribution of each word, [V + 1, d]."""
        return torch.from_numpy(self.method.table(self.vectors, self.counts, self.learnt))

    @property
    def width(self) -> int:
        """Dimension d."""
        return len(self.learnt)

    def embed(self, words: Words) -> np.ndarray:
        """Returns sentence vectors, [S, d] float32."""
        return self.method.finish(sums(self.table, words), words.lengths, self.learnt)

    def write_vectors(self, source: Path, target: Path) -> int:
        """Writes the vectors of a text, [lines, d] float32 ``.npy``, zero for marks.

        Returns:
            the number of lines.
        """
        refuse_streams(source)
        total = sum(1 for _ in read_lines(source))
        lines = iter(tqdm(read_lines(source), desc=str(target), total=total, unit=" lines", disable=None))
        with npy_on_disk(target, (total, self.width), np.float32) as vectors:
            for start in range(0, total, CHUNK):
                chunk = list(islice(lines, CHUNK))
                words = self.vocabulary.encode("" if is_boundary(line) else line for line in chunk)
                vectors[start : start + len(chunk)] = self.embed(words)
        return total

    def save(self, path: PathLike) -> None:
        """Writes the model atomically: an ``.npz`` file of plain arrays."""
        stream = io.BytesIO()
        np.savez(
            stream,
            settings=np.array(json.dumps({"format": FORMAT, **asdict(self.settings)})),
            words=np.frombuffer("\n".join(self.words).encode(), dtype=np.uint8),
            vectors=self.vectors, counts=self.counts, learnt=self.learnt,
        )  # fmt: skip
        write_bytes(path, stream.getvalue())

    @classmethod
    def load(cls, path: PathLike, option: str = "--model") -> "SentenceEmbedding":
        """Reads a model; nothing in the file is executed."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                settings = json.loads(str(arrays["settings"]))
                del settings["format"]
                words = bytes(arrays["words"]).decode().split("\n")
                return cls(words, arrays["vectors"], arrays["counts"], arrays["learnt"], Settings(**settings))
        except Exception as error:  # depends on the kind of damage
            raise InputError(f"{option} {path}: not a model of docnmt embed fit: {first_line(error)}") from error


def _vocabulary(words: Sequence[str], settings: Settings) -> Vocabulary:
    return Vocabulary(words, settings.lowercase, settings.phrases, settings.remove_bpe)


def fit(word_vectors: WordVectors, corpus: Sequence[PathLike], settings: Settings) -> SentenceEmbedding:
    """Fits a model on a corpus."""
    refuse_streams(*corpus)
    vocabulary = _vocabulary(word_vectors.words, settings)
    counts = np.zeros(len(vocabulary) + 1, dtype=np.int64)
    sentences = 0
    for words in vocabulary.encode_files(corpus):
        counts += np.bincount(words.ids, minlength=len(counts))
        sentences += len(words.lengths)
    known, unknown = counts[:-1], counts[-1]
    logger.info(
        f"{sentences:,} sentences, {counts.sum():,} words; {np.count_nonzero(known):,} of {len(vocabulary):,} vectors "
        f"used, {unknown:,} words without a vector"
    )
    if not known.any():
        raise InputError("--corpus: no word has a vector; both must be words, or the same subwords")

    def means(table: np.ndarray) -> Iterator[np.ndarray]:
        stride, first = -(-sentences // SAMPLE), 0
        for words in vocabulary.encode_files(corpus):
            sample = words.every(stride, -first % stride)
            first += len(words.lengths)
            yield sums(torch.from_numpy(table), sample) / np.maximum(sample.lengths, 1)[:, None].astype(np.float32)

    method = METHODS[settings.method](settings.iterations, settings.smoothing)
    learnt = method.fit(word_vectors.vectors, known, means)
    return SentenceEmbedding(word_vectors.words, word_vectors.vectors, known, learnt, settings)


def sums(table: torch.Tensor, words: Words) -> np.ndarray:
    """Returns the sum of the table rows of each sentence, [S, d]; zero for an empty sentence."""
    offsets = torch.from_numpy(np.cumsum(words.lengths) - words.lengths)
    return F.embedding_bag(torch.from_numpy(words.ids), table, offsets, mode="sum").numpy()
