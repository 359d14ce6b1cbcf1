"""WIT3 / IWSLT TED XML of development and test sets: one file a side, ``<doc docid>`` with ``<seg id>`` sentences."""

import html.entities
import logging
import re
from itertools import zip_longest
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from lxml import etree

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Reader, register
from docnmt_fairseq.corpus.talks import same_talk
from docnmt_fairseq.errors import InputError

# The files hold bare "&" and "<"; a recovering parser would swallow the text after them, so they are escaped first. All
# escapes are by number: after an error that it recovered from, the parser drops named ones, "&amp;" too.
BARE = re.compile(
    r"&(?!(?:#\d+|#x[0-9a-fA-F]+);)"
    r"|<(?![?!]|/?(?:mteval|srcset|refset|tstset|doc|seg|hl|p)\b|/?[A-Za-z][\w.-]*(?:\s+[\w:.-]+\s*=\s*\"[^\"<]*\")*\s*/?>)"
)
NAMED_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]*;)")
SEGMENT = re.compile(r"<seg\b")

logger = logging.getLogger(__name__)


class _Talk(NamedTuple):
    identifier: str
    line: int
    segments: Dict[str, Tuple[str, int]]  # segment id -> text, line


@register("ted-xml")
class TedXmlReader(Reader):
    """Development and test sets of WIT3 and IWSLT."""

    help = "WIT3/IWSLT TED XML (dev and test sets) and the older SGML of WMT, sides matched by document and segment id"
    files = "one XML file a side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """One file a side."""
        return self.one_file_a_side(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document of one paragraph a talk.

        Raises:
            InputError: talks or segments that differ between the sides, ids missing or repeated, a file beyond repair.
        """
        for talks in zip_longest(*(_talks(path) for path in paths)):
            first = same_talk(paths, talks)
            name = f"talk {first.identifier}"
            for path, talk in zip(paths[1:], talks[1:]):
                xml.check_same_ids(path, talk.line, name, first.segments, talk.segments, str(path))
            if first.segments:
                yield _document(paths, talks)


def _document(paths: Sequence[Path], talks: Sequence[_Talk]) -> Document:
    builder = DocumentBuilder(tuple(str(path) for path in paths))
    for identifier in talks[0].segments:
        texts, lines = zip(*(talk.segments[identifier] for talk in talks))
        builder.add(texts, lines)
    return builder.end_document()


def _talks(path: Path) -> Iterator[_Talk]:
    """Yields the talks of one file; every ``<seg`` of the file is in one of them, or it is an error."""
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
            found += len(talk.segments)
            yield talk
            xml.release(element)
    if found != expected:
        place = parser.error_log[0] if len(parser.error_log) else None
        raise InputError.at(
            path,
            place.line if place else 1,
            f"{expected} <seg> in the file, but {found} could be read; mend the XML here or before"
            + (f": {place.message}" if place else ""),
        )


def _escape_bare(line: str) -> str:
    """The line with named entities as characters and with stray ``&`` and ``<`` escaped."""
    line = NAMED_ENTITY.sub(_named_entity, line)
    return BARE.sub(lambda match: f"&#{ord(match.group())};", line)


def _named_entity(match: "re.Match[str]") -> str:
    name = match.group(1)
    if name in ("amp;", "lt;", "gt;", "quot;", "apos;"):
        return f"&#{ord(html.entities.html5[name])};"
    return html.entities.html5.get(name, match.group())


def _talk(path: Path, element: etree._Element) -> _Talk:
    identifier = (element.get("docid") or element.findtext("talkid") or "").strip()
    if not identifier:
        raise InputError.at(path, xml.line_of(element), "<doc> without docid= and without <talkid>")
    segments = xml.segments(path, element, f"talk {identifier}")
    texts = {key: (xml.text_of(path, segment), xml.line_of(segment)) for key, segment in segments.items()}
    return _Talk(identifier, xml.line_of(element), texts)
