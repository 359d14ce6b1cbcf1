"""WIT3 / IWSLT training text ``train.tags.<pair>.<lang>``: a talk is tag lines, then one sentence per line."""

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Iterator, List, Optional, Protocol, Sequence, Set, Tuple, TypeVar

from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.errors import InputError

# Only known tags: other lines in angle brackets are sentences. A closing tag may be missing.
TAGS = "url|keywords|speaker|talkid|title|description|reviewer|translator"
TAG_LINE = re.compile(rf"<(?P<document>/?doc)\b[^>]*>|<(?P<tag>{TAGS})\b[^>]*>(?P<content>.*?)(?:</(?P=tag)>)?")
TAIL = ("/doc", "reviewer", "translator")  # may follow the sentences of a talk; other tags start a new one


class Talk(Protocol):
    """Talk of one side: its identifier, the same on both sides, and its first line."""

    identifier: str
    line: int


T = TypeVar("T", bound=Talk)


def same_talk(paths: Sequence[Path], talks: Sequence[Optional[T]]) -> T:
    """Returns the first side's talk; raises :class:`InputError` if a side has none (None) or another one."""
    first = next(talk for talk in talks if talk is not None)
    for path, talk in zip(paths, talks):
        if talk is None:
            raise InputError(f"{path}: talk {first.identifier} is missing; both sides must have the same talks")
        if talk.identifier != first.identifier:
            message = f"talk {talk.identifier} here, but talk {first.identifier} in {paths[0]}"
            raise InputError.at(path, talk.line, f"{message}; both sides need the same talks in the same order")
    return first


@dataclass
class _Talk:
    line: int
    identifier: str = ""
    tags: Set[str] = field(default_factory=set)
    sentences: List[Tuple[str, int]] = field(default_factory=list)  # text, line


@register("ted-tags")
class TedTagsReader(Reader):
    """Training text of WIT3 and IWSLT."""

    help = "WIT3/IWSLT training text (train.tags), documents are talks; titles and descriptions are left out"
    files = "PREFIX (such as train.tags.de-en), or one file per side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns one file per side."""
        return self.prefix_or_files(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per talk; pairs without text on both sides are left out.

        Raises:
            InputError: different talks on both sides, unequal numbers of sentences, text before the first tag.
        """
        files = tuple(str(path) for path in paths)
        for talks in zip_longest(*map(_talks, paths)):
            first = same_talk(paths, talks)
            for path, talk in zip(paths, talks):
                if len(talk.sentences) != len(first.sentences):
                    message = f"talk {talk.identifier} has {len(talk.sentences)} sentences here"
                    raise InputError.at(path, talk.line, f"{message}, but {len(first.sentences)} in {paths[0]}")
            builder = DocumentBuilder(files)
            for row in zip(*(talk.sentences for talk in talks)):
                texts, lines = zip(*row)
                if any(texts):
                    builder.add(texts, lines)
            if not builder.empty:
                yield builder.end_document()


def _talks(path: Path) -> Iterator[_Talk]:
    """Yields the talks of one file."""
    talk = None
    for number, line in enumerate(read_lines(path), start=1):
        match = TAG_LINE.fullmatch(line)
        if match is None:
            if not line and (talk is None or talk.tags.intersection(TAIL)):
                continue  # between talks
            if talk is not None:
                talk.sentences.append((line, number))
            else:
                raise InputError.at(path, number, "text before the first talk; it starts with tags such as <url>")
            continue
        tag = match["document"] or match["tag"]
        if talk is None or (tag not in TAIL and (talk.sentences or tag in talk.tags)):
            if talk is not None:
                yield _complete(path, talk)
            talk = _Talk(number)
        talk.tags.add(tag)
        if tag == "talkid":
            talk.identifier = match["content"].strip()
    if talk is not None:
        yield _complete(path, talk)


def _complete(path: Path, talk: _Talk) -> _Talk:
    if not talk.identifier:
        raise InputError.at(path, talk.line, "a talk without <talkid>")
    return talk
