"""Zip archives of XML parts, as word processors write them, read without their dangers."""

import io
import zipfile
from typing import List, Mapping, Tuple

from docnmt_fairseq.corpus.files import DAMAGED
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.limits import Limits

Members = List[Tuple[zipfile.ZipInfo, bytes]]


def read_members(content: bytes, name: str, limits: Limits) -> Members:
    """The members of an archive, in its order. Nothing is written to disk.

    Raises:
        InputError: it is no archive, damaged, encrypted, larger than the limits allow, or has members with names that
            lead out of it or come twice.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            _check(infos, name)
            limits.check_unpacked(sum(info.file_size for info in infos), name)
            return [(info, _unpacked(archive, info, name)) for info in infos]
    except (*DAMAGED, RuntimeError, NotImplementedError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: not a whole zip archive, which .docx files are: {error}") from error


def _check(infos: List[zipfile.ZipInfo], name: str) -> None:
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise InputError(f"{name}: has two members of one name")
    for member in names:
        if member.startswith(("/", "\\")) or ".." in member.replace("\\", "/").split("/") or ":" in member:
            raise InputError(f"{name}: its member {member[:60]!r} leads out of it")


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> bytes:
    """A member, which never gets larger than it says."""
    with archive.open(info) as stream:
        content = stream.read(info.file_size)
        if len(content) != info.file_size or stream.read(1):
            raise InputError(f"{name}: its member {info.filename[:60]!r} is not as large as it says")
    return content


def packed(members: Members, new: Mapping[str, bytes]) -> bytes:
    """The archive with some members replaced, the others as they were."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for info, content in members:
            archive.writestr(_like(info), new.get(info.filename, content))
    return stream.getvalue()


def _like(info: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """A member's entry for other content."""
    entry = zipfile.ZipInfo(info.filename, info.date_time)
    entry.compress_type = zipfile.ZIP_STORED if info.compress_type == zipfile.ZIP_STORED else zipfile.ZIP_DEFLATED
    entry.external_attr, entry.create_system, entry.comment = info.external_attr, info.create_system, info.comment
    return entry
