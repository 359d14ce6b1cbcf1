"""A fitted model of sentence vectors, and the file that it is kept in."""

import io
import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import List, Optional

import numpy as np
import torch
import torch.nn.functional as F

from docnmt_fairseq.arrays import UNREADABLE
from docnmt_fairseq.embedding.methods import METHODS, Method
from docnmt_fairseq.embedding.vocabulary import Vocabulary, Words
from docnmt_fairseq.errors import InputError, first_line
from docnmt_fairseq.files import PathLike, write_bytes
from docnmt_fairseq.plain_json import parse_json

FORMAT = 1


@dataclass(frozen=True)
class Settings:
    """What a model was fitted with, and how it reads text.

    Attributes:
        method: of ``METHODS``.
        iterations, smoothing: see :class:`Method`.
        lowercase, phrases, remove_bpe: see :class:`Vocabulary`.
        neighbours: of a model beside a data-bin: how many similar sentences are kept for each.
    """

    method: str = "ca-sem"
    iterations: int = 100
    smoothing: float = 1e-3
    lowercase: bool = False
    phrases: bool = False
    remove_bpe: Optional[str] = None
    neighbours: int = 0


@dataclass(frozen=True)
class SentenceEmbedding:
    """Sentence vectors: of any sentence, whatever other sentences there are.

    Attributes:
        words: each once.
        vectors: [V, d] float32.
        counts: [V] int64, of the corpus that the model was fitted on.
        learnt: [d] float32, what was learnt from it: v_0 of ``ca-sem``, the component that ``sif`` removes.
        settings: how.
    """

    words: List[str]
    vectors: np.ndarray
    counts: np.ndarray
    learnt: np.ndarray
    settings: Settings = Settings()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words, as text is looked up."""
        return vocabulary_of(self.words, self.settings)

    @cached_property
    def method(self) -> Method:
        """How words make a sentence."""
        return method_of(self.settings)

    @cached_property
    def table(self) -> torch.Tensor:
        """What each word gives, [V + 1, d]."""
        return torch.from_numpy(self.method.table(self.vectors, self.counts, self.learnt))

    @property
    def width(self) -> int:
        """The width d."""
        return len(self.learnt)

    def embed(self, words: Words) -> np.ndarray:
        """Sentence vectors, [S, d] float32."""
        return self.method.finish(sums(self.table, words), words.lengths, self.learnt)

    def save(self, path: PathLike) -> None:
        """Writes the model, whole or not at all: an ``.npz`` file of plain arrays."""
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
        """Reads a model from its file, in which nothing can be executed.

        Raises:
            InputError: not such a file, one of another version, or a damaged one.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                settings = parse_json(str(arrays["settings"]))
                version = settings.pop("format")
                if version != FORMAT:
                    raise InputError(f"{option} {path}: a model of format {version}, this version reads {FORMAT}")
                words = bytes(arrays["words"]).decode().split("\n")
                model = cls(words, arrays["vectors"], arrays["counts"], arrays["learnt"], Settings(**settings))
            model._check()
        except InputError:
            raise
        except FileNotFoundError:
            raise InputError(f"{option} {path}: no such file") from None
        except UNREADABLE as error:
            raise InputError(
                f"{option} {path}: no model of docnmt embed fit, or a damaged one: {first_line(error)}"
            ) from error
        return model

    def _check(self) -> None:
        """Raises ``ValueError`` where arrays do not fit together."""
        size, width = len(self.words), self.width
        wanted = {"vectors": ((size, width), "f4"), "counts": ((size,), "i8"), "learnt": ((width,), "f4")}
        for name, (shape, kind) in wanted.items():
            array = getattr(self, name)
            if array.shape != shape or array.dtype != np.dtype(kind):
                raise ValueError(f"{name} is {array.dtype} {list(array.shape)}, expected {kind} {list(shape)}")
            if not np.isfinite(array).all():
                raise ValueError(f"{name} is not finite")
        if self.settings.method not in METHODS:
            raise ValueError(f"the method is {self.settings.method}")

    def with_neighbours(self, neighbours: int) -> "SentenceEmbedding":
        """The model that goes beside a data-bin."""
        return replace(self, settings=replace(self.settings, neighbours=neighbours))


def vocabulary_of(words: List[str], settings: Settings) -> Vocabulary:
    """The words, as text is looked up with these settings."""
    return Vocabulary(words, settings.lowercase, settings.phrases, settings.remove_bpe)


def method_of(settings: Settings) -> Method:
    """The method of these settings."""
    return METHODS[settings.method](settings.iterations, settings.smoothing)


def sums(table: torch.Tensor, words: Words) -> np.ndarray:
    """The sum of each sentence's rows of a table, [S, d]; zero for a sentence without words."""
    offsets = torch.from_numpy(np.cumsum(words.lengths) - words.lengths)
    return F.embedding_bag(torch.from_numpy(words.ids), table, offsets, mode="sum").numpy()
