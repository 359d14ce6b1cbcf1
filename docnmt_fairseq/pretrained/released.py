"""What a released model is, however it was released, and the registry of families that know how to read one."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from torch import Tensor

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import parse_json
from docnmt_fairseq.pretrained.vocabulary import Vocabulary
from docnmt_fairseq.registry import Registry

CONFIGURATION = "config.json"  # of models as the hub has them


@dataclass(frozen=True)
class Request:
    """What is to be imported.

    Attributes:
        path: a folder as the hub has it; of fairseq's models a checkpoint, or a folder with one.
        languages: source and target, as the data-bin will name them.
        codes: what the model calls them, where it has other names.
        subwords: file of the subword model, where it is not found beside the model.
        tokenizer: of words before subwords; None: the family's usual one.
    """

    path: Path
    languages: Tuple[str, str]
    codes: Tuple[Optional[str], Optional[str]] = (None, None)
    subwords: Optional[Path] = None
    tokenizer: Optional[str] = None

    def configuration(self) -> Dict[str, Any]:
        """What ``config.json`` says; empty: there is none.

        Raises:
            InputError: it is damaged.
        """
        path = self.path / CONFIGURATION
        return read_json(path) if path.is_file() else {}

    def file(self, name: str) -> Path:
        """A file of the folder.

        Raises:
            InputError: it is not there.
        """
        path = self.path / name
        if not path.is_file():
            raise InputError(f"{self.path}: lacks {name}; give the whole folder of the model")
        return path

    def token(self, side: int, tokens: Mapping[str, str]) -> str:
        """The language token of the source (0) or target (1).

        Args:
            side: which.
            tokens: the model's, by its name of the language.

        Raises:
            InputError: the model does not have the language, or several that could be meant.
        """
        wanted = self.codes[side] or self.languages[side]
        if wanted in tokens:
            return tokens[wanted]
        alike = [code for code in tokens if code.split("_")[0] == wanted]
        if len(alike) == 1:
            return tokens[alike[0]]
        option = ("--source-code", "--target-code")[side]
        found = ", ".join(sorted(alike or tokens)[:20])
        raise InputError(f"{option} {wanted}: the model has no such language, or several; it has {found}")


@dataclass(frozen=True)
class TextModels:
    """How text becomes symbols.

    Attributes:
        subwords: the kind, as :mod:`docnmt_fairseq.corpus.subwords` calls it.
        files: the subword models of source and target, one and the same for a joint one; none: words are symbols.
        tokenizer: before them.
        language_tokens: what sentences of source and target begin with.
    """

    subwords: str
    files: Tuple[Path, ...]
    tokenizer: str = "none"
    language_tokens: Tuple[Optional[str], Optional[str]] = (None, None)


@dataclass(frozen=True)
class Released:
    """A released model in the terms of this package.

    Attributes:
        family: its name.
        options: of ``document_transformer``, where they differ from its defaults.
        state: tensors by the names that fairseq's Transformer has for them, its vocabulary in the dictionaries' order.
        vocabularies: of source and target.
        text: how text becomes symbols.
        positions: the longest source and target sentence, in tokens.
        files: that were read.
        languages: all that the model calls languages; empty: it has one pair.
    """

    family: str
    options: Mapping[str, Any]
    state: Dict[str, Tensor]
    vocabularies: Tuple[Vocabulary, Vocabulary]
    text: TextModels
    positions: Tuple[int, int]
    files: Sequence[Path] = ()
    languages: List[str] = field(default_factory=list)

    @property
    def joint(self) -> bool:
        """Whether both languages have one subword model and one dictionary."""
        source, target = self.vocabularies
        return len(set(self.text.files)) <= 1 and source.symbols == target.symbols


class Family:
    """Contract: how the models of one family are read."""

    def read(self, request: Request) -> Released:
        """The model.

        Raises:
            InputError: a file is missing, damaged, not safe, or does not belong to the others.
        """
        raise NotImplementedError


FAMILIES: Registry[Family] = Registry("family of released models")


def read_json(path: Path) -> Dict[str, Any]:
    """The object in a JSON file.

    Raises:
        InputError: the file is none.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    return content
