"""Readers of TED talks (WIT3, IWSLT): training text in tag lines, and XML of development and test sets."""

import html.entities
import re
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence, Set, Tuple

from lxml import etree

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.errors import InputError

# Training text. Only known tags: other lines in angle brackets are sentences. A closing tag may be missing.
TAGS = "url|keywords|speaker|talkid|title|description|reviewer|translator"
TAG_LINE = re.compile(rf"<(?P<document>/?doc)\b[^>]*>|<(?P<tag>{TAGS})\b[^>]*>(?P<content>.*?)(?:</(?P=tag)>)?")
TAIL = ("/doc", "reviewer", "translator")  # may follow the sentences of a talk; other tags start a new one

# XML. The files contain bare "&" and "<", after which a recovering parser would drop text, so they are escaped first;
# by number, because after a recovered error the parser drops named entities, even "&amp;".
BARE = re.compile(
    r"&(?!(?:#\d+|#x[0-9a-fA-F]+);)"
    r"|<(?![?!]|/?(?:mteval|srcset|refset|tstset|doc|seg|hl|p)\b|/?[A-Za-z][\w.-]*(?:\s+[\w:.-]+\s*=\s*\"[^\"<]*\")*\s*/?>)"
)
NAMED_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]*;)")
SEGMENT = re.compile(r"<seg\b")


@dataclass
class Talk:
    """Talk of one side: first line, identifier, and text and line of its sentences by id."""

    line: int
    identifier: str = ""
    sentences: Dict[str, Tuple[str, int]] = field(default_factory=dict)
    tags: Set[str] = field(default_factory=set)  # tag lines so far, in training text


def _documents(paths: Sequence[Path], talks_of: Callable[[Path], Iterator[Talk]]) -> Iterator[Document]:
    """Yields one document per talk; raises :class:`InputError` if the sides have different talks or sentences."""
    for talks in zip_longest(*map(talks_of, paths)):
        first = next(talk for talk in talks if talk is not None)
        for path, talk in zip(paths, talks):
            if talk is None:
                raise InputError(f"{path}: talk {first.identifier} is missing; both sides must have the same talks")
            if talk.identifier != first.identifier:
                message = f"talk {talk.identifier} here, but talk {first.identifier} in {paths[0]}"
                raise InputError.at(path, talk.line, f"{message}; both sides need the same talks in the same order")
            xml.check_same_ids(path, talk.line, f"talk {talk.identifier}", first.sentences, talk.sentences)
        builder = DocumentBuilder(tuple(map(str, paths)))
        for identifier in first.sentences:
            texts, lines = zip(*(talk.sentences[identifier] for talk in talks))
            builder.add(texts, lines)
        if not builder.empty:
            yield builder.end_document()


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
        for document in _documents(paths, _talks_in_tags):
            rows = [(row, lines) for row, lines in zip(document.paragraphs[0], document.lines[0]) if any(row)]
            if rows:
                sentences, numbers = map(list, zip(*rows))
                yield Document([sentences], document.files, [numbers])


def _talks_in_tags(path: Path) -> Iterator[Talk]:
    """Yields the talks of one file."""
    talk = None
    for number, line in enumerate(read_lines(path), start=1):
        match = TAG_LINE.fullmatch(line)
        if match is None:
            if not line and (talk is None or talk.tags.intersection(TAIL)):
                continue  # between talks
            if talk is None:
                raise InputError.at(path, number, "text before the first talk; it starts with tags such as <url>")
            talk.sentences[str(len(talk.sentences) + 1)] = (line, number)
            continue
        tag = match["document"] or match["tag"]
        if talk is None or (tag not in TAIL and (talk.sentences or tag in talk.tags)):
            if talk is not None:
                yield _complete(path, talk)
            talk = Talk(number)
        talk.tags.add(tag)
        if tag == "talkid":
            talk.identifier = match["content"].strip()
    if talk is not None:
        yield _complete(path, talk)


def _complete(path: Path, talk: Talk) -> Talk:
    if not talk.identifier:
        raise InputError.at(path, talk.line, "a talk without <talkid>")
    return talk


@register("ted-xml")
class TedXmlReader(Reader):
    """Development and test sets of WIT3 and IWSLT."""

    help = "WIT3/IWSLT TED XML (dev and test sets) and the older SGML of WMT, sides matched by document and segment id"
    files = "one XML file per side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns one file per side."""
        return self.exactly(self.sides, arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per talk.

        Raises:
            InputError: talks or segments differ between the sides, missing or repeated ids, irreparable XML.
        """
        return _documents(paths, _talks_in_xml)


def _talks_in_xml(path: Path) -> Iterator[Talk]:
    """Yields the talks of one file; raises :class:`InputError` if a ``<seg>`` is in none of them."""
    parser = etree.XMLPullParser(events=("end",), tag="doc", recover=True, **xml.SAFE)
    expected = found = 0
    seen = set()
    for line in read_lines(path):
        line = _escape_bare(line)
        expected += len(SEGMENT.findall(line))
        parser.feed(line + "\n")
        for _, element in parser.read_events():
            assert isinstance(element, etree._Element)
            talk = _talk(path, element)
            if talk.identifier in seen:
                raise InputError.at(path, talk.line, f"talk {talk.identifier} occurs twice")
            seen.add(talk.identifier)
            found += len(talk.sentences)
            yield talk
            xml.release(element)
    if found != expected:
        place = parser.error_log[0] if len(parser.error_log) else None
        message = f"{expected} <seg> in the file, but {found} could be read; correct the XML here or before"
        message += f": {place.message}" if place else ""
        raise InputError.at(path, place.line if place else 1, message)


def _escape_bare(line: str) -> str:
    """Replaces named entities by characters and escapes stray ``&`` and ``<``."""
    line = NAMED_ENTITY.sub(_named_entity, line)
    return BARE.sub(lambda match: f"&#{ord(match.group())};", line)


def _named_entity(match: "re.Match[str]") -> str:
    name = match.group(1)
    if name in ("amp;", "lt;", "gt;", "quot;", "apos;"):
        return f"&#{ord(html.entities.html5[name])};"
    return html.entities.html5.get(name, match.group())


def _talk(path: Path, element: etree._Element) -> Talk:
    identifier = (element.get("docid") or element.findtext("talkid") or "").strip()
    if not identifier:
        raise InputError.at(path, xml.line_of(element), "<doc> without docid= and without <talkid>")
    segments = xml.segments(path, element, f"talk {identifier}")
    sentences = {key: (xml.text_of(path, segment), xml.line_of(segment)) for key, segment in segments.items()}
    return Talk(xml.line_of(element), identifier, sentences)
