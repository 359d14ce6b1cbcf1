"""Formats of files to translate by name, a class each in a file of its own."""

from docnmt_fairseq.corpus.files import unpacked_name
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import import_folder
from docnmt_fairseq.translate.formats.base import FORMATS, SPLITS, Document, Format, Reading

__all__ = ["FORMATS", "PLAIN", "RUNNING", "SPLITS", "Document", "Format", "Reading", "format_of"]

import_folder(__name__, __path__)

PLAIN, RUNNING = "text", "running"  # what files are that no format claims by their ending


def format_of(file_name: str, name: str, reading: Reading) -> Format:
    """The format of a file.

    Args:
        file_name: whose ending tells, that of a packed file put aside, where no format is named.
        name: of the format, or "".
        reading: what it is told.

    Raises:
        InputError: there is no format of this name.
    """
    if name:
        if name not in FORMATS:
            raise InputError(f"--format {name}: no such format; choose from {', '.join(FORMATS.names())}")
        return FORMATS[name](reading)
    ending = unpacked_name(file_name.lower())
    plain = RUNNING if reading.running else PLAIN
    return FORMATS[next((known for known in FORMATS.names() if ending.endswith(FORMATS[known].endings)), plain)](
        reading
    )
