"""HTML pages (.html): text, and readable attributes; the rest of a tag does not change."""

import html
import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import (
    KEPT,
    NAME,
    UNTRANSLATED,
    Mark,
    Marked,
    Tag,
    ends_of,
    is_kept,
    objects_in,
    tags_of,
)
from docnmt_fairseq.translate.formats.markup_projection import Gap
from docnmt_fairseq.translate.formats.messages import objects_of
from docnmt_fairseq.translate.formats.segments import Segment

# Inline elements; any other one ends a text.
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "label", "mark", "meter", "q", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "wbr", "code", "kbd", "samp", "var", "output", "rb", "rp", "rt",
))  # fmt: skip
RAW = frozenset(("script", "style", "textarea", "xmp", "iframe"))  # without tags inside
TAGS_PER_SENTENCE = 30
DECLARES = 2**14  # bytes that contain the declaration of the character set
CHARSET = re.compile(r"""\b(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
# Read as windows-1252 by browsers.
AS_BROWSERS = dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii"), "windows-1252")
# With its optional value.
ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>=`]+))?""")
READ = frozenset((
    "alt", "title", "placeholder", "label", "summary", "aria-label", "aria-description", "aria-placeholder",
    "aria-roledescription", "aria-valuetext",
))  # fmt: skip
DESCRIPTIONS = frozenset(
    (
        "description",
        "og:title",
        "og:description",
        "og:image:alt",
        "twitter:title",
        "twitter:description",
        "twitter:image:alt",
    )
)
Region = Tuple[Tag, int, int]  # untranslated text: tag that stands for it, its end, number of the next tag
BUTTONS = frozenset(("button", "submit", "reset"))
TRANSLATED = re.compile(r"""\stranslate\s*=\s*(?:["']?yes["'\s>]|""|'')""", re.IGNORECASE)
LINK = re.compile(r"</?a[\s>]", re.IGNORECASE)
INDEX = re.compile(r"<su[bp][\s>]", re.IGNORECASE)
# Statements of Angular, Blade, Razor.
CONTROL = re.compile(
    r"@(?:if|else(?: if|if)?|unless|for(?:each|else)?|switch|case|default|defer|placeholder|loading|error|empty|while|"
    r"end\w+|isset|auth|guest|can|extends|section|yield|include\w*|component|slot|push|stack|lang|json|php|csrf|method)\b"
    r"(?:\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))?(?:\s*\{)?|@let\s[^;\n]*;"
)
FORMULA = re.compile(
    r"\\\(.{1,2000}?\\\)|\\\[.{1,2000}?\\\]|\$\$[^$]+\$\$|\\begin\{(\w+\*?)\}.{0,20000}?\\end\{\1\}", re.DOTALL
)
STATEMENT = re.compile(r"\{%|<%(?!=)|\{\{[#/]")  # of a template


@register("html")
class Html(WholeFile):
    """Texts with inline markup, each followed by the readable attributes inside."""

    help = "HTML with readable attributes; script, style, pre, code and translate=no stay"
    endings = (".html", ".htm", ".xhtml")

    def parse(self, content: bytes, name: str) -> Parsed:
        charset = _charset(content)
        text = decode(content, name, charset)
        self.reading.limits.check(text.count("<"), "tags", name, TAGS_PER_SENTENCE)
        parts = list(_parts(text))
        texts = list(_texts(parts, list(_values(text))))

        def render(pieces: List[Pieces]) -> bytes:
            new = list(zip(texts, pieces))
            values = [(one, own) for one, own in new if isinstance(one, Value) and own is not None]
            changed = list(_parts(_with_values(text, values)))
            # With unbalanced quotation marks, new values could change the tags.
            found = changed if list(map(_shape, changed)) == list(map(_shape, parts)) else parts
            of_texts = iter([own for one, own in new if isinstance(one, Marked)])
            page = "".join(part.render(next(of_texts)) if isinstance(part, Marked) else part for part in found)
            return page.encode(charset, "xmlcharrefreplace")  # scripts and styles, without references, do not change

        return Parsed([one.segment() for one in texts], render)


def _charset(content: bytes) -> str:
    """Returns the character set of a page: UTF-8 if it is valid UTF-8 or declares nothing, or the declared one."""
    if not content.isascii():
        try:
            content.decode()
            return "UTF-8"  # a declaration in an HTTP header would overrule that of the page
        except UnicodeDecodeError:
            pass
    head = content[:DECLARES].decode("latin-1")
    for tag in tags_of(head, RAW):
        declares = tag.name == "meta" or head.startswith("<?xml", tag.start)
        found = CHARSET.search(head, tag.start, tag.end) if declares else None
        if found:
            charset = found[1].lower()
            return "UTF-8" if charset.startswith(("utf-16", "utf-32")) else AS_BROWSERS.get(charset, found[1])
    return "UTF-8"


@dataclass(frozen=True)
class Value:
    """Value of a readable attribute: its span in the file, and the value with quotation marks."""

    start: int
    end: int
    written: str

    @property
    def marked(self) -> Marked:
        """Readable text with its placeholders."""
        text = html.unescape(self.written[1:-1] if self.written[0] in "\"'" else self.written)
        return Marked(text, objects_of(text))

    def segment(self) -> Segment:
        """Returns the text as a segment."""
        return self.marked.segment()

    def render(self, pieces: List[str]) -> str:
        """Returns the value with a translation."""
        text = self.marked.render(pieces)
        return self.written if text == self.marked.render(None) else f'"{html.escape(text)}"'


def _texts(parts: Sequence[Union[str, Marked]], values: Sequence[Value]) -> Iterator[Union[Marked, Value]]:
    """Yields the texts, each followed by the attributes in it or before the next one."""
    place = number = 0
    for part in parts:
        if isinstance(part, Marked):
            yield part
        place += len(part.render(None) if isinstance(part, Marked) else part)
        while number < len(values) and values[number].start < place:
            yield values[number]
            number += 1


def _shape(part: Union[str, Marked]) -> object:
    return (part.pieces, part.gaps) if isinstance(part, Marked) else None


def _with_values(text: str, values: Sequence[Tuple[Value, List[str]]]) -> str:
    """Returns the file with new values of attributes."""
    found, behind = [], 0
    for value, new in values:
        found += [text[behind : value.start], value.render(new)]
        behind = value.end
    return "".join([*found, text[behind:]])


def _values(text: str) -> Iterator[Value]:
    """Yields the readable attributes."""
    for tag, _, _ in _top_tags(text):
        if tag.gap is Gap.CLOSE or not tag.name or UNTRANSLATED.search(text, tag.start, tag.end):
            continue
        attributes = [one for one in ATTRIBUTE.finditer(text, tag.start + 1 + len(tag.name), tag.end) if one[2]]
        others = {one[1].lower(): one[2].strip("\"'").lower() for one in attributes}
        for one in attributes:
            if _is_read(tag.name, one[1].lower(), others):
                yield Value(*one.span(2), one[2])


def _is_read(element: str, attribute: str, attributes: Mapping[str, str]) -> bool:
    """Returns whether an attribute is readable."""
    if element == "meta":
        return attribute == "content" and bool(
            DESCRIPTIONS & {attributes.get("name", ""), attributes.get("property", "")}
        )
    if element == "input" and attribute == "value":
        return attributes.get("type") in BUTTONS
    return attribute in READ and element not in ("link", "style", "script")


def _top_tags(text: str) -> Iterator[Tuple[Tag, int, Gap]]:
    """Yields the tags outside of untranslated elements, with the end of the tag or element and its gap."""
    tags = list(tags_of(text, RAW))
    ends = ends_of(tags)
    kept: Dict[int, Region] = {}
    number = 0
    while number < len(tags):
        tag, last = tags[number], ends.get(number)
        if number not in kept and is_kept(text, tag):
            kept.update(_kept_regions(text, tags, ends, number))
        if number in kept:
            tag, end, number = kept[number]
            yield tag, end, Gap.OBJECT
        elif last == number + 1 and tag.end == tags[last].start and tag.name in INLINE:  # an icon or an anchor
            yield tag, tags[last].end, Gap.OBJECT
            number += 2
        else:
            yield tag, tag.end, tag.gap
            number += 1


def _kept_regions(text: str, tags: Sequence[Tag], ends: Mapping[int, int], number: int) -> Iterator[Tuple[int, Region]]:
    """Yields the untranslated regions of an element, which are between translated elements inside.

    Each has the number of its first tag: the start tag, or the end tag of a translated element.
    """
    tag, last = tags[number], ends.get(number)
    if last is None:  # the next block ends it
        blocks = (n for n in range(number + 1, len(tags)) if tags[n].name and tags[n].name not in INLINE)
        behind = next(blocks, len(tags))
        end = tags[behind].start if behind < len(tags) else len(text)
    else:
        behind, end = last + 1, tags[last].end
    first = number
    for inner in range(number + 1, behind) if tag.name not in KEPT else ():
        one = tags[inner]
        if inner > first and ends.get(inner, behind) < behind and TRANSLATED.search(text, one.start, one.end):
            yield first, (tag, one.start, inner)
            first = ends[inner]
            name = tag.name if one.name in INLINE else one.name  # a block ends the text
            tag = replace(tags[first], name=name)
    yield first, (tag, end, behind)


def _parts(text: str) -> Iterator[Union[str, Marked]]:
    """Yields untranslated parts of the file, and the texts in between."""
    marks: List[Mark] = []
    first = behind = 0  # start of the current text, end of the last tag
    for tag, end, gap in _top_tags(text):
        behind = end
        if tag.name in INLINE or not tag.name:
            marks.append((tag.start, end, gap))
            continue
        yield from _divided(text, first, tag.start, marks)
        yield text[tag.start : end]
        marks, first = [], end
    # A tag without an end continues to the end of the file.
    broken = text.find("<", behind)
    while broken >= 0 and not NAME.match(text, broken):
        broken = text.find("<", broken + 1)
    broken = len(text) if broken < 0 else broken
    yield from _divided(text, first, broken, marks)
    yield text[broken:]


def _divided(text: str, first: int, end: int, tags: List[Mark]) -> Iterator[Marked]:
    """Yields a text; several if it consists of links, or elements in it touch without white space."""
    own = text[first:end]
    marks = [(start - first, stop - first, gap) for start, stop, gap in tags]
    marks += [*objects_of(own), *objects_in(own, CONTROL, FORMULA)]
    marks = [mark for mark in _apart(marks) if mark[1] <= len(own)]
    cuts = sorted({0, *_touching(own, marks), *_links(own, marks), len(own)})
    for start, stop in pairwise(cuts):
        inside = [(a - start, b - start, gap) for a, b, gap in marks if start <= a < stop or a == b == stop]
        yield Marked(own[start:stop], inside, html.unescape, lambda text: html.escape(text, quote=False))


def _apart(marks: List[Mark]) -> Iterator[Mark]:
    """Yields marks without those that overlap with a previous one."""
    behind = 0
    for mark in sorted(marks, key=lambda mark: (mark[0], -mark[1])):
        if mark[0] >= behind:
            behind = mark[1]
            yield mark


def _touching(text: str, marks: Sequence[Mark]) -> Iterator[int]:
    """Yields places between words where an element ends and the next one starts, or a template branches."""
    ends, closed, cut = -1, False, -1  # end of the last mark; state of a run of marks without text in between
    for start, stop, gap in [*marks, (len(text), len(text), Gap.OBJECT)]:
        if start != ends:
            if cut > 0 and text[ends : ends + 1].isalnum():
                yield cut
            closed, cut = False, -1
            spaced = not text[start - 1 : start].strip()
        next_element = closed and gap is Gap.OPEN and not INDEX.match(text, start)
        if not spaced and cut < 0 and (next_element or STATEMENT.match(text, start)):
            cut = start
        closed, ends = closed or gap is Gap.CLOSE, stop


def _links(text: str, marks: Sequence[Mark]) -> List[int]:
    """Returns the starts and ends of the links of a text that has no words outside of links."""
    places: List[int] = []
    behind, inside = 0, False
    for start, stop, gap in [*marks, (len(text), len(text), Gap.OBJECT)]:
        if not inside and any(map(str.isalpha, text[behind:start])):
            return []
        if gap is not Gap.OBJECT and LINK.match(text, start):
            inside = gap is Gap.OPEN
            places.append(start if inside else stop)
        behind = stop
    return places if len(places) > 2 else []
