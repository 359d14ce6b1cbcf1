"""Base class of formats that are zip archives, such as Word documents."""

import io
import zipfile
from abc import abstractmethod
from typing import Dict, List, Mapping, Tuple

from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, check_size

TYPE = "mimetype"  # member of EPUB that must be the first one and not compressed

Members = List[Tuple[zipfile.ZipInfo, bytes]]


class Archive(WholeFile):
    """Zip archive; members are parsed one by one and never written to disk."""

    @abstractmethod
    def parts(self, contents: Mapping[str, bytes], name: str) -> Dict[str, Parsed]:
        """Returns the members with text, in reading order.

        Args:
            contents: content of each member.
            name: name of the file in messages.
        """

    def parse(self, content: bytes, name: str) -> Parsed:
        members = self._members(content, name)
        parts = self.parts({info.filename: part for info, part in members}, name)

        def render(pieces: List[Pieces]) -> bytes:
            new: Dict[str, bytes] = {}
            behind = 0
            for path, parsed in parts.items():
                own = pieces[behind : behind + len(parsed.segments)]
                behind += len(own)
                if any(one is not None for one in own):
                    new[path] = parsed.render(own)
            return _packed(members, new) if new else content

        return Parsed([segment for parsed in parts.values() for segment in parsed.segments], render)

    def _members(self, content: bytes, name: str) -> Members:
        """Returns the members in order."""
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            size = sum(info.file_size for info in infos)  # reading stops at the sizes of the list
            check_size(size, self.reading.limits.unpacked, "bytes unpacked", name)
            return [(info, archive.read(info)) for info in infos]


def _packed(members: Members, new: Mapping[str, bytes]) -> bytes:
    """Returns the archive with some members replaced; order, dates and attributes stay."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for info, content in sorted(members, key=lambda member: member[0].filename != TYPE):
            entry = zipfile.ZipInfo(info.filename, info.date_time)
            is_stored = info.compress_type == zipfile.ZIP_STORED or info.filename == TYPE
            entry.compress_type = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            entry.external_attr, entry.create_system = info.external_attr, info.create_system
            entry.comment = info.comment
            archive.writestr(entry, new.get(info.filename, content))
    return stream.getvalue()
