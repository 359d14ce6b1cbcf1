"""File formats by name, one class per file."""

from docnmt_fairseq.corpus.files import unpacked_name
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.registry import import_folder
from docnmt_fairseq.translate.formats.base import FORMATS, SPLITS, Document, Format, Reading

__all__ = ["FORMATS", "PLAIN", "RUNNING", "SPLITS", "Document", "Format", "Reading", "format_of"]

import_folder(__name__, __path__)

PLAIN, RUNNING = "text", "running"  # formats of files with other endings


def format_of(file_name: str, name: str, reading: Reading) -> Format:
    """Returns the format of a file.

    Args:
        file_name: determines the format if ``name`` is empty; the ending of a packed file is ignored.
        name: name of the format, or "".
        reading: settings.

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
