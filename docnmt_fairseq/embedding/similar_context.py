"""Similar sentences as context of the models of a task: read from the files of a data-bin, or computed."""

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
    """Provides similar sentences for the models of a task.

    Args:
        data_bin: first data-bin, which has the sentence vectors.
        languages: source and target language.
        symbols: symbols of the source dictionary.
        language_token: token at the start of all source sentences, if any.
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
        self.needed = 0  # similar sentences per sentence

    def serve(self, model: nn.Module) -> None:
        """Registers how many similar sentences a model needs."""
        self.needed = max(self.needed, similar_contexts(model))

    def of_split(self, data_bin: Path, split: str, lines: Lines) -> Optional[np.ndarray]:
        """Returns the table of a split, see :func:`read_similar`; None if no model needs it."""
        return read_similar(data_bin, split, self.languages, lines, self.needed) if self.needed else None

    def in_memory(self, lines: Lines, index: DocumentIndex) -> Optional[np.ndarray]:
        """Returns the table of text that is not in a data-bin; None if no model needs it.

        Raises:
            InputError: the data-bin has no sentence vectors, or too few similar sentences.
        """
        if not self.needed:
            return None
        known = self.vectors.settings.neighbours
        if known < self.needed:
            raise InputError(
                f"the model needs {self.needed} similar sentences, {self._file} has {known}; run "
                f"{how_to_make(self.data_bin, self.languages[0], self.needed)}"
            )
        from docnmt_fairseq.embedding.neighbours import neighbours_in_memory

        return neighbours_in_memory(self.vectors, lines, index, self.symbols, self.language_token)

    @property
    def files(self) -> List[Path]:
        """Files that :meth:`in_memory` depends on."""
        return [self._file] if self.needed else []

    @property
    def _file(self) -> Path:
        return vectors_file(self.data_bin, self.languages[0])

    @cached_property
    def vectors(self) -> "SentenceEmbedding":
        """Sentence vectors."""
        if not self._file.is_file():
            command = how_to_make(self.data_bin, self.languages[0], self.needed)
            raise InputError(f"the model needs similar sentences, {self._file} is missing; run {command}")
        from docnmt_fairseq.embedding.model import SentenceEmbedding

        return SentenceEmbedding.load(self._file, "similar sentences:")
