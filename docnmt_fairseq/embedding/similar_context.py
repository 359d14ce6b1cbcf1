"""The similar sentences that a model has as context: of a data-bin from its files, of other text computed."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import numpy as np
from torch import nn

from docnmt_fairseq.context.selected.base import similar_contexts
from docnmt_fairseq.data.index import DocumentIndex, Lines
from docnmt_fairseq.data.similar import how_to_make, read_similar, vectors_file
from docnmt_fairseq.errors import InputError

if TYPE_CHECKING:
    from docnmt_fairseq.embedding.model import SentenceEmbedding


class SimilarContext:
    """What a task's models know about similar sentences.

    Args:
        data_bin: the first, which has the sentence vectors.
        languages: source, target.
        symbols: of the source's dictionary.
        language_token: what source sentences begin with that is not of their text; None: there is none.
    """

    def __init__(
        self,
        data_bin: Path,
        languages: Tuple[str, str],
        symbols: Sequence[str],
        language_token: Optional[int] = None,
    ):
        self.data_bin, self.languages = data_bin, languages
        self.symbols, self.language_token = symbols, language_token
        self.needed = 0  # of each sentence

    def serve(self, model: nn.Module) -> None:
        """Takes note of how many similar sentences a model wants to know."""
        self.needed = max(self.needed, similar_contexts(model))

    def of_split(self, data_bin: Path, split: str, lines: Lines) -> Optional[np.ndarray]:
        """A split's table, see :func:`read_similar`; None if no model asks."""
        return read_similar(data_bin, split, self.languages, lines, self.needed) if self.needed else None

    def in_memory(self, lines: Lines, index: DocumentIndex) -> Optional[np.ndarray]:
        """The same of text that is in no data-bin.

        Raises:
            InputError: the data-bin has no sentence vectors, or its splits know fewer similar sentences.
        """
        if not self.needed:
            return None
        known = self.vectors.settings.neighbours
        if known < self.needed:
            raise InputError(
                f"the model has {self.needed} similar sentences as context, {self._file} is for {known}; run "
                f"{how_to_make(self.data_bin, self.languages[0], self.needed)}"
            )
        from docnmt_fairseq.embedding.neighbours import neighbours_in_memory

        return neighbours_in_memory(self.vectors, lines, index, self.symbols, self.language_token)

    @property
    def files(self) -> List[Path]:
        """What similar sentences of text that is in no data-bin depend on; nothing if no model asks."""
        return [self._file] if self.needed else []

    @property
    def _file(self) -> Path:
        return vectors_file(self.data_bin, self.languages[0])

    @cached_property
    def vectors(self) -> "SentenceEmbedding":
        """The vectors by which sentences are similar."""
        if not self._file.is_file():
            command = how_to_make(self.data_bin, self.languages[0], self.needed)
            raise InputError(f"the model's context is similar sentences, but there is no {self._file}; run {command}")
        from docnmt_fairseq.embedding.model import SentenceEmbedding

        return SentenceEmbedding.load(self._file, "similar sentences:")
