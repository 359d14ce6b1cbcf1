"""Models to import: request, and location: folder, file, or name on the Hugging Face hub."""

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Optional, Tuple

from docnmt_fairseq.errors import InputError, first_line

CONFIG = "config.json"
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
CARD = "README.md"
PATTERNS = ["*.json", "*.spm", "*.model", "*.safetensors", CARD]  # downloaded files
PICKLES, CUSTOM_TOKENIZER = "pytorch_model*.bin", "tokenization_*.py"


@dataclass(frozen=True)
class Request:
    """Model to import.

    Attributes:
        path: folder in the format of the hub; for fairseq's models a checkpoint, or a folder with one.
        languages: source and target language, as the data-bin names them.
        codes: names of the languages in the model, if they differ.
        subwords: file of the subword model; None: find it next to the checkpoint.
        tokenizer: tokenizer before subwords; None: the default of the family.
    """

    path: Path
    languages: Tuple[str, str]
    codes: Tuple[Optional[str], Optional[str]] = (None, None)
    subwords: Optional[Path] = None
    tokenizer: Optional[str] = None

    def file(self, name: str) -> Path:
        """Returns a file of the folder.

        Raises:
            InputError: it is missing.
        """
        path = self.path / name
        if not path.is_file():
            raise InputError(f"{self.path}: {name} is missing; give the whole folder of the model")
        return path

    def language_token(self, side: int, tokens: Mapping[str, str]) -> str:
        """Returns the token of the source (0) or target (1) language, from tokens by the model's name of the language.

        Raises:
            InputError: the language is missing or ambiguous.
        """
        wanted = self.codes[side] or self.languages[side]
        if wanted in tokens:
            return tokens[wanted]
        similar = [code for code in tokens if code.split("_")[0] == wanted]
        if len(similar) == 1:
            return tokens[similar[0]]
        option, known = ("--source-code", "--target-code")[side], ", ".join(sorted(similar or tokens)[:20])
        raise InputError(f"{option} {wanted}: missing or ambiguous; languages of the model: {known}")


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
        if revision is not None:
            raise InputError(f"--revision {revision}: {name} is a local path, not a name on the hub")
        _check_no_code(name, [file.name for file in path.glob("*.py")])
        return path, None
    if not HUB_NAME.fullmatch(name):
        raise InputError(f"SOURCE {name!r}: not a folder, a file, or a name on the hub (OWNER/MODEL)")
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError as error:
        hint = "pip install 'docnmt_fairseq[pretrained]'"
        raise InputError(f"SOURCE {name}: not a folder; to download it from the hub, {hint}") from error
    try:
        about = HfApi().model_info(name, revision=revision)
        files = [sibling.rfilename for sibling in about.siblings or []]
        _check_no_code(name, files)
        safe = any(file.endswith(".safetensors") for file in files)
        folder = snapshot_download(name, revision=about.sha, allow_patterns=PATTERNS if safe else [*PATTERNS, PICKLES])
    except InputError:
        raise
    except Exception as error:  # network, hub, disk: no common class
        raise InputError(f"SOURCE {name}: not a folder, and download failed: {first_line(error)}") from None
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
    """Returns the object of a JSON file.

    Raises:
        InputError: it cannot be read as an object.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a JSON object: {error}") from error
