"""WIT3 / IWSLT TED XML of development and test sets: one file per side, ``<doc docid>`` with ``<seg id>``."""

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
from docnmt_fairseq.corpus.readers.ted_tags import same_talk
from docnmt_fairseq.errors import InputError

# The files contain bare "&" and "<", after which a recovering parser would drop text, so they are escaped first; by
# number, because after a recovered error the parser drops named entities, even "&amp;".
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
    files = "one XML file per side"

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """Returns one file per side."""
        return self.one_file_per_side(arguments)

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per talk.

        Raises:
            InputError: talks or segments differ between the sides, missing or repeated ids, irreparable XML.
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
            found += len(talk.segments)
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


def _talk(path: Path, element: etree._Element) -> _Talk:
    identifier = (element.get("docid") or element.findtext("talkid") or "").strip()
    if not identifier:
        raise InputError.at(path, xml.line_of(element), "<doc> without docid= and without <talkid>")
    segments = xml.segments(path, element, f"talk {identifier}")
    texts = {key: (xml.text_of(path, segment), xml.line_of(segment)) for key, segment in segments.items()}
    return _Talk(identifier, xml.line_of(element), texts)
