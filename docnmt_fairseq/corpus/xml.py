"""Safe XML parsing: no network, no external entities, one element in memory, errors with file and line."""

from contextlib import nullcontext
from typing import Any, BinaryIO, Dict, Iterator, Mapping, Optional, TypeVar, cast

from lxml import etree

from docnmt_fairseq.corpus.files import DAMAGED, open_binary
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

T = TypeVar("T")

# No DTD is loaded and no entity is expanded, so that a corpus file can neither read other files nor exhaust memory.
SAFE: Dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


def iterate_elements(path: PathLike, tag: str, stream: Optional[BinaryIO] = None) -> Iterator[etree._Element]:
    """Yields the elements with a tag and frees each after use."""
    with open_binary(path) if stream is None else nullcontext(stream) as content:
        try:
            for _, element in etree.iterparse(content, events=("end",), tag=tag, **SAFE):
                yield element
                release(element)
        except (etree.XMLSyntaxError, *DAMAGED) as error:
            line = getattr(error, "lineno", None) or 1
            raise InputError.at(path, line, f"cannot be read as XML from this line on: {error}") from error


def line_of(element: etree._Element) -> int:
    """Line number of the start of an element; 0 if unknown."""
    return cast(int, element.sourceline or 0)


def release(element: etree._Element) -> None:
    """Frees an element and its preceding siblings."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def required(path: PathLike, element: etree._Element, attribute: str) -> str:
    """Returns the value of an attribute; raises :class:`InputError` if it is missing."""
    value = element.get(attribute)
    if value is None or not value.strip():
        raise InputError.at(path, line_of(element), f"<{element.tag}> without {attribute}=")
    return value.strip()


def text_of(path: PathLike, element: etree._Element) -> str:
    """Returns the text of an element and its descendants as one line; raises :class:`InputError` for entities."""
    for entity in element.iter(etree.Entity):
        message = f"entity {entity.text} is not expanded; write the character itself"
        raise InputError.at(path, line_of(element), message)
    return " ".join("".join(map(str, element.itertext())).split())


def segments(path: PathLike, parent: etree._Element, name: str) -> Dict[str, etree._Element]:
    """Returns the ``<seg>`` descendants by id, in order; ``name`` is the document, for messages."""
    found: Dict[str, etree._Element] = {}
    for segment in parent.iter("seg"):
        add_once(found, required(path, segment, "id"), segment, path, line_of(segment), f"{name}: <seg")
    return found


def add_once(found: Dict[str, T], identifier: str, value: T, path: PathLike, line: int, element: str) -> None:
    """Adds what has an id, ``element`` in messages; raises :class:`InputError` if the id was seen before."""
    if identifier in found:
        raise InputError.at(path, line, f"{element} id={identifier!r}> occurs twice")
    found[identifier] = value


def check_same_ids(
    path: PathLike, line: int, name: str, source: Mapping[str, object], target: Mapping[str, object]
) -> None:
    """Raises :class:`InputError` if the segment ids of both sides differ; ``name`` names the target in the message."""
    different = sorted(source.keys() ^ target.keys())
    if different:
        counts = f"{len(source)} source segments, but {len(target)} here"
        raise InputError.at(path, line, f"{name}: {counts}; on one side only: {', '.join(different[:5])}")
