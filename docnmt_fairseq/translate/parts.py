"""Parts of a translated file, which shards write beside its name; the one that comes last makes the file of them.

Beside each part stands what it was made from, so that parts of other texts, options or documents never become one file.
"""

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from typing import Mapping, Sequence

from docnmt_fairseq.corpus.files import atomic_write_bytes, partial_path
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.plain_json import parse_json
from docnmt_fairseq.translate.begun import differing

COPIED = 2**20  # bytes at a time
FACTS = {"source": str, "documents": int, "first": int, "end": int, "settings": dict}  # of a part, and what they are


class MisfitError(InputError):
    """Parts that are not those of one work."""


@dataclass(frozen=True)
class Part:
    """A part, and what it was made from.

    Attributes:
        path: where it is.
        source: SHA-256 of the whole file that is translated.
        documents: that this has.
        first, end: those in the part.
        settings: that the translations depend on.
    """

    path: Path
    source: str
    documents: int
    first: int
    end: int
    settings: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> "Part":
        """The part at a path.

        Raises:
            MisfitError: nothing beside it tells what it was made from.
        """
        record = record_path(path)
        try:
            facts = parse_json(record.read_bytes())
            if not all(isinstance(facts[name], kind) for name, kind in FACTS.items()):
                raise TypeError
            return cls(path, **facts)
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise MisfitError(
                f"{path}: beside it, {record.name} should say what it was made from, but is missing or damaged; bring "
                "it, too, or make the part again with --force"
            ) from error

    def write_record(self) -> None:
        """Remembers what it is made from.

        Raises:
            InputError: that cannot be written.
        """
        facts = asdict(self)
        content = json.dumps({name: facts[name] for name in FACTS})
        atomic_write_bytes(record_path(self.path), content.encode())

    def check_goes_with(self, other: "Part") -> None:
        """Compares what it was made from with what another one was.

        Raises:
            MisfitError: it is another text, or with other settings.
        """
        if self.source != other.source:
            reason = f"was made from another text than {other.path.name}"
        elif names := differing(self.settings, other.settings):
            own, others = (part.settings.get(names[0], "none") for part in (self, other))
            reason = f"was made with another --{names[0]} ({own}) than {other.path.name} ({others})"
        else:
            return
        raise MisfitError(f"{self.path}: {reason}; make one of them again with --force")


def part_path(target: Path, shard: int, shards: int) -> Path:
    """Where a shard writes its part of a file."""
    return target.with_name(f"{target.name}.shard-{shard}-of-{shards}")


def record_path(part: Path) -> Path:
    """Where it stands what a part was made from."""
    return part.with_name(f"{part.name}.json")


def table_of(target: Path) -> Path:
    """The file of a translation's scores, beside it."""
    return target.with_name(f"{target.name}.scores.tsv")


def check_parts(paths: Sequence[Path]) -> None:
    """Makes sure that parts are all of one file, in its order.

    Raises:
        MisfitError: they are not; names one that does not fit.
    """
    parts = list(map(Part.read, paths))
    end = 0
    for part in parts:
        part.check_goes_with(parts[0])
        if part.first != end:
            raise _gap(part, f"begins at document {part.first + 1:,}, but the part before ends at {end:,}")
        end = part.end
    if end != parts[-1].documents:
        raise _gap(parts[-1], f"ends at document {end:,} of {parts[-1].documents:,}, but no part is behind it")


def _gap(part: Part, reason: str) -> MisfitError:
    return MisfitError(f"{part.path}: {reason}: other files were shared out with this one; begin anew with --force")


def put_together(target: Path, parts: Sequence[Path]) -> bool:
    """Makes a file of its parts, and the table of its scores, if all of them are there; returns whether they were.

    The parts are removed. Several shards that end at the same time may do so at once: all write the same.

    Raises:
        MisfitError: the parts do not fit together.
        InputError: the file cannot be written.
    """
    if not _there(parts):
        return False
    try:
        check_parts(parts)
    except MisfitError:
        if _there(parts):
            raise
        return target.exists()  # another shard was faster
    _join(table_of(target), list(map(table_of, parts)))
    whole = _join(target, parts)
    for part in parts:
        record_path(part).unlink(missing_ok=True)
    return whole


def _there(paths: Sequence[Path]) -> bool:
    return bool(paths) and all(path.exists() for path in paths)


def _join(target: Path, parts: Sequence[Path]) -> bool:
    """Makes a file of others and removes these, if all of them are there; returns whether they were."""
    if not _there(parts):
        return False
    own = partial_path(target).with_name(f"{partial_path(target).name}.{token_hex(8)}")
    try:
        with open(own, "wb") as whole:
            for part in parts:
                with open(part, "rb") as stream:
                    shutil.copyfileobj(stream, whole, COPIED)
        os.replace(own, target)
        for part in parts:
            part.unlink(missing_ok=True)
    except FileNotFoundError:  # another shard was faster
        return target.exists()
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from error
    finally:
        own.unlink(missing_ok=True)
    return True
