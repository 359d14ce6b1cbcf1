"""Where released models are: a folder, a file, or a name of the hub."""

import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Iterable, Optional

from docnmt_fairseq.errors import InputError, first_line

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
CARD = "README.md"
# What a model is read from; other files of a repository, such as code and weights of other libraries, are not fetched.
PATTERNS = ["*.json", "*.spm", "*.model", "*.safetensors", CARD]
OWN_TOKENIZER = "tokenization_*.py"
PICKLES = ["pytorch_model*.bin"]


@dataclass(frozen=True)
class Found:
    """A released model on this machine.

    Attributes:
        path: its folder, or a checkpoint's file.
        revision: of the hub; None: it is not from there.
    """

    path: Path
    revision: Optional[str] = None

    @property
    def licence(self) -> Optional[str]:
        """As the model's card states it, between the dashes it begins with; None: it states none."""
        card = (self.path if self.path.is_dir() else self.path.parent) / CARD
        if not card.is_file():
            return None
        parts = card.read_text(encoding="utf-8", errors="replace").split("---\n", 2)
        header = parts[1] if len(parts) == 3 and not parts[0].strip() else ""
        stated = re.search(r"^license:\s*(?:-\s*)?(.+?)\s*$", header, re.MULTILINE)
        return stated.group(1).strip("\"'") if stated else None


def find(name: str, revision: Optional[str] = None) -> Found:
    """The model of a name.

    Args:
        name: a folder or file on this machine; else ``OWNER/MODEL`` of the hub, from which it is fetched.
        revision: of the hub: branch, tag or commit.

    Raises:
        InputError: there is none.
    """
    if not name:  # of a variable that is not set; as a path it would be the folder where the command is run
        raise InputError("SOURCE: an empty name; give one, '.' for this folder")
    path = Path(name)
    if path.exists():
        if revision is not None:
            raise InputError(f"--revision {revision}: {name} is on this machine, not of the hub")
        if path.is_dir():
            _refuse_own_code(name, [file.name for file in path.glob("*.py")])
        return Found(path)
    if not HUB_NAME.fullmatch(name):
        raise InputError(f"{name}: no such folder or file, and no name of the hub (OWNER/MODEL)")
    return _fetched(name, revision)


def _fetched(name: str, revision: Optional[str]) -> Found:
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError as error:
        raise InputError(
            f"{name}: no such folder; to fetch it from the hub, pip install 'docnmt_fairseq[pretrained]'"
        ) from error
    try:
        about = HfApi().model_info(name, revision=revision)
        files = [sibling.rfilename for sibling in about.siblings or []]
        _refuse_own_code(name, files)
        safe = any(file.endswith(".safetensors") for file in files)
        wanted = PATTERNS if safe else [*PATTERNS, *PICKLES]
        folder = snapshot_download(name, revision=about.sha, allow_patterns=wanted)
    except InputError:
        raise
    except Exception as error:  # of the network, the hub, the disk: the library has no common one
        reason = first_line(error)
        raise InputError(f"{name}: no such folder here, and it cannot be fetched from the hub: {reason}") from None
    return Found(Path(folder), about.sha)


def _refuse_own_code(name: str, files: Iterable[str]) -> None:
    """Raises :class:`InputError` if a model brings code that splits its text: it does so in a way of its own."""
    code = [file for file in files if fnmatch(file, OWN_TOKENIZER)]
    if code:
        raise InputError(f"{name}: splits text by code of its own, {code[0]}, which is not executed; not supported")
