"""Talks of TED files: both sides have the same ones in the same order."""

from pathlib import Path
from typing import Optional, Protocol, Sequence, TypeVar

from docnmt_fairseq.errors import InputError


class Talk(Protocol):
    """A talk of one side.

    Attributes:
        identifier: of the talk, the same on both sides.
        line: where it begins in its file.
    """

    identifier: str
    line: int


T = TypeVar("T", bound=Talk)


def same_talk(paths: Sequence[Path], talks: Sequence[Optional[T]]) -> T:
    """The first side's talk of those that stand at one place of the files.

    Raises:
        InputError: a side lacks it (None), or has another in its place.
    """
    first = next(talk for talk in talks if talk is not None)
    for path, talk in zip(paths, talks):
        if talk is None:
            raise InputError(f"{path}: talk {first.identifier} is missing; both sides must have the same talks")
        if talk.identifier != first.identifier:
            message = f"talk {talk.identifier} here, but talk {first.identifier} at this place in {paths[0]}"
            raise InputError.at(path, talk.line, f"{message}; both sides need the same talks in the same order")
    return first
