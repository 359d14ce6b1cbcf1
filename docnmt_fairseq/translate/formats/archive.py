"""Members of zip archives such as Word documents."""

import io
import zipfile
from typing import List, Mapping, Tuple

from docnmt_fairseq.corpus.files import DAMAGED
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import FormatLimits, TooLarge

Members = List[Tuple[zipfile.ZipInfo, bytes]]


def read_members(content: bytes, name: str, limits: FormatLimits) -> Members:
    """Returns the members of an archive in order, without writing to disk.

    Raises:
        InputError: it is not an archive, damaged, encrypted or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if sum(info.file_size for info in infos) > limits.unpacked:  # reading stops at this size
                raise TooLarge(f"{name}: larger than {limits.unpacked:,} bytes unpacked; divide it")
            return [(info, archive.read(info)) for info in infos]
    except (*DAMAGED, RuntimeError, NotImplementedError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: not a complete zip archive: {error}") from error


def packed(members: Members, new: Mapping[str, bytes]) -> bytes:
    """Returns the archive with some members replaced; order, dates and attributes stay."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for info, content in members:
            entry = zipfile.ZipInfo(info.filename, info.date_time)
            is_stored = info.compress_type == zipfile.ZIP_STORED
            entry.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            entry.external_attr, entry.create_system, entry.comment = (
                info.external_attr,
                info.create_system,
                info.comment,
            )
            archive.writestr(entry, new.get(info.filename, content))
    return stream.getvalue()
