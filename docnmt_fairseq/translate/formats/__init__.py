"""File formats by name, one class per file."""

import re
from typing import Optional

from docnmt_fairseq.corpus.files import unpacked_name
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import import_folder
from docnmt_fairseq.translate.formats.base import FORMATS, SPLITS, Document, Format, Reading

__all__ = ["FORMATS", "PLAIN", "RUNNING", "SPLITS", "Document", "Format", "Reading", "format_of"]

import_folder(__name__, __path__)

PLAIN, RUNNING = "text", "running"  # formats of files with other endings
ENDING = re.compile(r"\.([A-Za-z]\w*(?:[-_]\w+)*)$")
# Endings of text: parts of corpora, and codes of languages with regions, unless files of programs have them.
TEXT = re.compile(
    r"text|txt|src|tgt|trg|ref|hyp|out|lines|sentences|tok|raw|shard-\d+-of-\d+|"
    r"(?!(?:db|go|js|ps|py|rb|rc|rs|ts|xz)$)[a-z]{2}(?:[-_][a-z\d]{2,4})*|[a-z]{2,3}[-_](?:[a-z]{2,4}|\d{3})",
    re.IGNORECASE,
)


def named_format(file_name: str) -> Optional[str]:
    """Returns the name of the format with the ending of a file, or None; the ending of a packed file is ignored."""
    ending = unpacked_name(file_name.lower())
    return next((name for name in FORMATS.names() if ending.endswith(FORMATS[name].endings)), None)


def format_of(file_name: str, name: str, reading: Reading) -> Format:
    """Returns the format of a file.

    Args:
        file_name: determines the format if ``name`` is empty; the ending of a packed file is ignored.
        name: name of the format, or "".
        reading: settings.

    Raises:
        InputError: the ending is neither that of a format nor of text.
    """
    if name:
        return FORMATS[name](reading)
    named = named_format(file_name)
    if named is None and not _is_text(file_name, reading):
        known = " ".join(ending for name in FORMATS.names() for ending in FORMATS[name].endings)
        raise InputError(
            f"{file_name}: format not known (known: {known}); as text: --format {PLAIN} (HTTP: format={PLAIN}); "
            "in folders, --pattern selects files"
        )
    return FORMATS[named or (RUNNING if reading.running else PLAIN)](reading)


def _is_text(file_name: str, reading: Reading) -> bool:
    """Returns whether a file without the ending of a format is text: it has no ending, or one of text or languages."""
    ending = ENDING.search(unpacked_name(file_name))
    return ending is None or TEXT.fullmatch(ending[1]) is not None or ending[1] in reading.languages()
