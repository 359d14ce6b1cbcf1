"""WIT3 / IWSLT training text ``train.tags.<pair>.<lang>``: a talk is a head of tag lines, then a sentence a line."""

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Iterator, List, Sequence, Set, Tuple

from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.corpus.talks import same_talk
from docnmt_fairseq.errors import InputError

# Only these, so that a sentence in angle brackets stays a sentence; a missing closing tag makes none of a title.
TAGS = "url|keywords|speaker|talkid|title|description|reviewer|translator"
TAG_LINE = re.compile(rf"<(?P<document>/?doc)\b[^>]*>|<(?P<tag>{TAGS})\b[^>]*>(?P<content>.*?)(?:</(?P=tag)>)?")
TAIL = ("/doc", "reviewer", "translator")  # may follow the sentences of a talk; any other tag starts a new one


@dataclass
class _Talk:
    line: int
    identifier: str = ""
    tags: Set[str] = field(default_factory=set)
    sentences: List[Tuple[str, int]] = field(default_factory=list)  # text, line


@register("ted-tags")
class TedTagsReader(Reader):
    """Training text of WIT3 and IWSLT."""

    help = "WIT3/IWSLT training text (train.tags), a document a talk; titles and descriptions are left out"
    files = "PREFIX (such as train.tags.de-en), or one file a side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """One file a side."""
        return self.prefix_or_files(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document of one paragraph a talk that has sentences; a pair without any text is left out.

        Raises:
            InputError: talks that differ between the sides or have unequal numbers of sentences, text before the first
                tag.
        """
        files = tuple(str(path) for path in paths)
        for talks in zip_longest(*map(_talks, paths)):
            first = same_talk(paths, talks)
            for path, talk in zip(paths, talks):
                if len(talk.sentences) != len(first.sentences):
                    message = (
                        f"{len(talk.sentences)} sentences in talk {talk.identifier}, {len(first.sentences)} of it in"
                    )
                    raise InputError.at(path, talk.line, f"{message} {paths[0]}; they must be as many")
            builder = DocumentBuilder(files)
            for row in zip(*(talk.sentences for talk in talks)):
                texts, lines = zip(*row)
                if any(texts):
                    builder.add(texts, lines)
            if not builder.empty:
                yield builder.end_document()


def _talks(path: Path) -> Iterator[_Talk]:
    """Yields the talks of one file, one in memory."""
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
