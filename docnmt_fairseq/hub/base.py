"""Import: options, location of a model (folder, file or name on the hub), and the contract of families."""

import json
import re
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.tokenizers import TOKENIZERS
from docnmt_fairseq.errors import InputError, first_line, needs_extra
from docnmt_fairseq.options import CheckedOptions, Choices, option
from docnmt_fairseq.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from docnmt_fairseq.hub.vocabulary import Vocabulary

CONFIG = "config.json"
CARD = "README.md"
PATTERNS = ["*.json", "*.spm", "*.model", "*.safetensors", CARD]  # downloaded files
PICKLES, CUSTOM_TOKENIZER = "pytorch_model*.bin", "tokenization_*.py"
ARCHITECTURES = DOCUMENT, STOCK = ("document_transformer", "transformer")
FAIRSEQ = "checkpoints of fairseq"  # group of options


@dataclass(frozen=True)
class ImportOptions(CheckedOptions):
    """Options of ``docnmt import``."""

    source_lang: str = option(MISSING, "source language, used in file suffixes", argparse_alias="-s", metavar="LANG")
    target_lang: str = option(MISSING, "target language", argparse_alias="-t", metavar="LANG")
    output: Path = option(MISSING, "output folder", metavar="DIR")
    source_code: Optional[str] = option(
        None, "name of the source language in the model, e.g. eng_Latn (default: LANG)", metavar="CODE"
    )
    target_code: Optional[str] = option(None, "name of the target language in the model", metavar="CODE")
    revision: Optional[str] = option(None, "branch, tag or commit on the hub (default: main)", metavar="NAME")
    architecture: str = option(
        DOCUMENT,
        "architecture of the checkpoint; transformer: fairseq's own, which needs no plugin, if it computes the same",
        names=Choices(ARCHITECTURES),
    )
    subwords: Optional[Path] = option(
        None,
        "SentencePiece model (.model, .spm) or BPE codes (default: next to the checkpoint)",
        metavar="FILE",
        group=FAIRSEQ,
    )
    tokenizer: Optional[str] = option(
        None,
        "tokenizer before subwords (default: moses-escaped with BPE codes, otherwise none)",
        names=Choices(TOKENIZERS),
        group=FAIRSEQ,
    )

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language, as the data-bin names them."""
        return self.source_lang, self.target_lang


@dataclass(frozen=True)
class Request:
    """Model to import.

    Attributes:
        path: folder in the format of the hub; for fairseq's models a checkpoint, or a folder with one.
        options: options of the import.
    """

    path: Path
    options: ImportOptions

    def language_token(self, side: int, tokens: Mapping[str, str]) -> str:
        """Returns the token of the source (0) or target (1) language, from tokens by the model's name of the language.

        Raises:
            InputError: the language is missing or ambiguous.
        """
        given = self.options
        wanted = (given.source_code, given.target_code)[side] or given.languages[side]
        if wanted in tokens:
            return tokens[wanted]
        similar = [code for code in tokens if code.split("_")[0] == wanted]
        if len(similar) == 1:
            return tokens[similar[0]]
        option, known = ("--source-code", "--target-code")[side], ", ".join(sorted(similar or tokens)[:20])
        raise InputError(f"{option} {wanted}: missing or ambiguous; languages of the model: {known}")


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
    state: Dict[str, "Tensor"]
    vocabularies: "Tuple[Vocabulary, Vocabulary]"
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
            InputError: a file with tensors cannot be loaded safely, or a file belongs to another model.
        """


FAMILIES: Registry[Family] = Registry("model family")


def find(name: str, revision: Optional[str] = None) -> Tuple[Path, Optional[str]]:
    """Returns the path of a model, downloaded from the hub if necessary, and its commit on the hub.

    Args:
        name: folder or file, otherwise ``OWNER/MODEL`` on the hub.
        revision: branch, tag or commit on the hub.

    Raises:
        InputError: it does not exist, or has a tokenizer in Python code.
    """
    path = Path(name)
    if name and path.exists():
        _check_no_code(name, [file.name for file in path.glob("*.py")])
        return path, None
    with needs_extra("pretrained", f"SOURCE {name}: not a folder, and for a download from the hub"):
        from huggingface_hub import HfApi, snapshot_download
    try:
        about = HfApi().model_info(name, revision=revision)
        files = [sibling.rfilename for sibling in about.siblings or []]
        safe = any(file.endswith(".safetensors") for file in files)
        folder = snapshot_download(name, revision=about.sha, allow_patterns=PATTERNS if safe else [*PATTERNS, PICKLES])
    except Exception as error:  # network, hub, disk: no common class
        raise InputError(f"SOURCE {name}: not a folder, and download failed: {first_line(error)}") from None
    _check_no_code(name, files)
    return Path(folder), about.sha


def _check_no_code(name: str, files: Iterable[str]) -> None:
    code = [file for file in files if fnmatch(file, CUSTOM_TOKENIZER)]
    if code:
        raise InputError(f"SOURCE {name}: its tokenizer is Python code, {code[0]}, which is not executed")


def licence(path: Path) -> Optional[str]:
    """Returns the licence stated in the header of the model card next to a file or in a folder; None without one."""
    card = (path if path.is_dir() else path.parent) / CARD
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    header = re.match(r"\s*---\n(.*?)---\n", text, re.DOTALL)
    stated = re.search(r"^license:\s*(?:-\s*)?(.+?)\s*$", header[1], re.MULTILINE) if header else None
    return stated[1].strip("\"'") if stated else None


def read_json(path: Path) -> Dict[str, Any]:
    """Returns the object of a JSON file."""
    return dict(json.loads(path.read_text(encoding="utf-8")))
