"""Readers of TED talks (WIT3, IWSLT): training text in tag lines, and XML of development and test sets."""

import html
import re
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from docnmt_fairseq.corpus import xml
from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.readers.base import Omitted, Reader, register
from docnmt_fairseq.errors import InputError

Match = re.Match[str]

# Training text. Only known tags: other lines in angle brackets are sentences. A closing tag may be missing.
TAGS = "url|keywords|speaker|talkid|title|description|reviewer|translator"
TAG_LINE = re.compile(rf"<(?P<document>/?doc)\b[^>]*>|<(?P<tag>{TAGS})\b[^>]*>(?P<content>.*?)(?:</(?P=tag)>)?")
TAIL = ("/doc", "reviewer", "translator")  # may follow the sentences of a talk; other tags start a new one

# XML and SGML. The files contain bare "&" and "<", tags such as <unk> that are text, names in upper case and attributes
# without quotes, so that an XML parser would refuse them or lose text; only these elements are read.
ATTRIBUTES = r"""(?P<attributes>(?:[^<>"']|"[^"<>]*"|'[^'<>]*')*)"""
ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/>]+))""")
DOC = re.compile(rf"<doc\b{ATTRIBUTES}>(?P<content>.*?)</doc\s*>", re.DOTALL | re.IGNORECASE)
SEGMENT = re.compile(rf"<seg\b{ATTRIBUTES}(?:(?<=/)>|>(?P<content>.*?)</seg\s*>)", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"</?(?:doc|seg)\b[^>\n]*>?", re.IGNORECASE)
TALKID = re.compile(r"<talkid\b[^<>]*>(.*?)</talkid\s*>", re.DOTALL | re.IGNORECASE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
INLINE = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]*)?(?:(?<=/)>|>((?:(?!<\1\b).)*?)</\1\s*>|/>)", re.DOTALL)


@dataclass
class Talk:
    """Talk of one side: first line, identifier, and text and line of its sentences by id."""

    line: int
    identifier: str = ""
    sentences: Dict[str, Tuple[str, int]] = field(default_factory=dict)
    tags: Set[str] = field(default_factory=set)  # tag lines so far, in training text


def _documents(paths: Sequence[Path], talks_of: Callable[[Path], Iterator[Talk]], drop: bool) -> Iterator[Document]:
    """Yields one document per talk; talks with different sentences on the sides are an error, or left out."""
    omitted = Omitted(paths[-1], "talks", drop)
    for talks in zip_longest(*map(talks_of, paths)):
        place, first = next((path, talk) for path, talk in zip(paths, talks) if talk is not None)
        for path, talk in zip(paths, talks):
            if talk is None or talk.identifier != first.identifier:
                message = f"talk {first.identifier} is not at this place of {path}"
                raise InputError.at(place, first.line, f"{message}; both sides need the same talks in the same order")
        document = None
        with omitted.catch():
            document = _document(paths, talks)
        if document is not None:
            yield document
    omitted.report()


def _document(paths: Sequence[Path], talks: Sequence[Talk]) -> Optional[Document]:
    """Returns the document of a talk; None without sentences."""
    first = talks[0]
    for path, talk in zip(paths, talks):
        xml.check_same_ids(path, talk.line, f"talk {talk.identifier}", first.sentences, talk.sentences)
    builder = DocumentBuilder(tuple(map(str, paths)))
    for identifier in first.sentences:
        texts, lines = zip(*(talk.sentences[identifier] for talk in talks))
        builder.add(texts, lines)
    return None if builder.empty else builder.end_document()


@register("ted-tags")
class TedTagsReader(Reader):
    """Training text of WIT3 and IWSLT."""

    help = "WIT3/IWSLT training text (train.tags), documents are talks; titles and descriptions are left out"
    files = "PREFIX (such as train.tags.de-en), or one file per side"
    resolve = Reader.prefix_or_files

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        """Yields one document per talk; pairs without text on both sides are left out."""
        for document in _documents(paths, _talks_in_tags, self.reading.drop_incomplete):
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
                yield talk
            talk = Talk(number)
        talk.tags.add(tag)
        if tag == "talkid":
            talk.identifier = match["content"].strip()
    if talk is not None:
        yield talk


@register("ted-xml")
class TedXmlReader(Reader):
    """Development and test sets of WIT3 and IWSLT."""

    help = "WIT3/IWSLT TED XML (dev and test sets) and the older SGML of WMT, sides matched by document and segment id"
    files = "one XML file per side"
    resolve = Reader.one_per_side

    def read(self, paths: Sequence[Path]) -> Iterator[Document]:
        return _documents(paths, _talks_in_xml, self.reading.drop_incomplete)


def _talks_in_xml(path: Path) -> Iterator[Talk]:
    """Yields the talks of one file, one in memory."""
    for line, match in _elements(path, DOC, _parts_with_documents(path), 1):
        yield _talk(path, line, match)


def _parts_with_documents(path: Path) -> Iterator[str]:
    """Yields the text of a file in parts that end after a ``</doc>``, without comments."""
    lines: List[str] = []
    for line in read_lines(path):
        lines.append(f"{line}\n")
        if "</doc" in line.lower():
            yield _without_comments("".join(lines))
            lines = []
    yield _without_comments("".join(lines))


def _without_comments(text: str) -> str:
    return COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)


def _elements(path: Path, pattern: "re.Pattern[str]", parts: Iterable[str], line: int) -> Iterator[Tuple[int, Match]]:
    """Yields line and match of every element in parts of text that start at a line."""
    for part in parts:
        end = 0
        for match in pattern.finditer(part):
            _refuse_tags(path, part[end : match.start()], line + part.count("\n", 0, end))
            yield line + part.count("\n", 0, match.start()), match
            end = match.end()
        _refuse_tags(path, part[end:], line + part.count("\n", 0, end))
        line += part.count("\n")


def _refuse_tags(path: Path, text: str, line: int) -> None:
    found = TAG.search(text)
    if found:
        message = f"{found.group()} is in the wrong place, or its element is not closed; correct it"
        raise InputError.at(path, line + text.count("\n", 0, found.start()), message)


def _talk(path: Path, line: int, document: Match) -> Talk:
    content = document["content"]
    talkid = TALKID.search(content)
    identifier = (_attributes(document).get("docid") or (talkid[1] if talkid else "")).strip()
    talk = Talk(line, identifier)
    first = line + document.group().count("\n", 0, document.start("content") - document.start())
    for number, segment in _elements(path, SEGMENT, [content], first):
        key, text = _attributes(segment).get("id", "").strip(), segment["content"] or ""
        _refuse_tags(path, text, number)
        xml.add_once(talk.sentences, key, (_text(text), number), path, number, f"talk {identifier}: <seg")
    return talk


def _attributes(element: Match) -> Dict[str, str]:
    """Returns the attributes of an element by name in lower case."""
    found = ATTRIBUTE.findall(element["attributes"])
    return {name.lower(): html.unescape(double or single or bare) for name, double, single, bare in found}


def _text(content: str) -> str:
    """Returns the text of a segment; inline elements lose their tags, a tag without end is text."""
    before = None
    while before != content:
        before, content = content, INLINE.sub(lambda match: match[2] or "", content)
    return " ".join(ENTITY.sub(lambda match: html.unescape(match.group()), content).split())
