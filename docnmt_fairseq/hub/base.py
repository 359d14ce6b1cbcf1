"""Contract of import: imported models, and the registry of families that read them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from torch import Tensor

from docnmt_fairseq.hub.source import Request
from docnmt_fairseq.hub.vocabulary import Vocabulary
from docnmt_fairseq.registry import Registry


@dataclass(frozen=True)
class ImportedModel:
    """Model of another project in the terms of this package.

    Attributes:
        family: name of the family.
        options: options of ``document_transformer`` that differ from the defaults.
        state: parameters by the names of fairseq's Transformer, vocabulary in the order of the dictionaries.
        vocabularies: source and target vocabulary.
        positions: maximum number of source and target tokens.
        subwords: kind of subword model, as in :mod:`docnmt_fairseq.corpus.subwords`.
        subword_files: subword models of source and target, the same file if joint; empty: words are symbols.
        tokenizer: tokenizer before subwords.
        language_tokens: first token of source and target sentences.
        files: files that were read.
        languages: languages of a multilingual model.
    """

    family: str
    options: Mapping[str, Any]
    state: Dict[str, Tensor]
    vocabularies: Tuple[Vocabulary, Vocabulary]
    positions: Tuple[int, int]
    subwords: str
    subword_files: Tuple[Path, ...]
    tokenizer: str = "none"
    language_tokens: Tuple[Optional[str], Optional[str]] = (None, None)
    files: Sequence[Path] = ()
    languages: List[str] = field(default_factory=list)

    @property
    def joint(self) -> bool:
        """Returns whether both languages share subword model and dictionary."""
        source, target = self.vocabularies
        return len(set(self.subword_files)) <= 1 and source.symbols == target.symbols


class Family(ABC):
    """Contract of a family of models: ``cls()``; registered by its ``model_type`` on the hub."""

    @abstractmethod
    def read(self, request: Request) -> ImportedModel:
        """Returns the model.

        Raises:
            InputError: a file is missing, damaged, unsafe, or belongs to another model.
        """


FAMILIES: Registry[Family] = Registry("model family")
