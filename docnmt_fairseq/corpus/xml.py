"""XML without its dangers: no network, no outside entities, one document in memory, errors with file and line."""

from contextlib import nullcontext
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, cast

from lxml import etree

from docnmt_fairseq.corpus.files import DAMAGED, PathLike, open_binary
from docnmt_fairseq.errors import InputError

# No DTD is loaded and no entity is expanded, so that a corpus file can neither read other files nor blow up.
SAFE: Dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}


def iterate_elements(path: PathLike, tag: str, stream: Optional[BinaryIO] = None) -> Iterator[etree._Element]:
    """Yields the elements of this name one by one, freeing each after use.

    Args:
        path: the file, which may be gzipped; with ``stream`` only a name for messages.
        tag: name of the elements.
        stream: read instead of the file; left open.

    Raises:
        InputError: not well-formed XML, or a damaged file.
    """
    with open_binary(path) if stream is None else nullcontext(stream) as content:
        try:
            for _, element in etree.iterparse(content, events=("end",), tag=tag, **SAFE):
                yield element
                release(element)
        except etree.XMLSyntaxError as error:
            raise InputError.at(path, error.lineno or 1, f"not well-formed XML: {error.msg}") from error
        except DAMAGED as error:
            raise InputError(f"{path}: cannot be read: {error}") from error


def line_of(element: etree._Element) -> int:
    """The line of its file where an element begins; 0 where that is not known."""
    return cast(int, element.sourceline or 0)


def release(element: etree._Element) -> None:
    """Frees an element and what stands before it in its parent."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def required(path: PathLike, element: etree._Element, attribute: str) -> str:
    """An attribute's value.

    Raises:
        InputError: the element lacks it.
    """
    value = element.get(attribute)
    if value is None or not value.strip():
        raise InputError.at(path, line_of(element), f"<{element.tag}> without {attribute}=")
    return value.strip()


def text_of(path: PathLike, element: etree._Element) -> str:
    """The text of an element and all below it, as one line.

    Raises:
        InputError: it holds an entity that XML does not define by itself.
    """
    for entity in element.iter(etree.Entity):
        raise InputError.at(path, line_of(element), f"entity {entity.text} is not expanded; write the character itself")
    return " ".join("".join(map(str, element.itertext())).split())


def segments(path: PathLike, parent: etree._Element, name: str) -> Dict[str, etree._Element]:
    """The ``<seg>`` elements below a parent, by id, in order.

    Raises:
        InputError: a missing or repeated id; ``name`` says in which document.
    """
    found: Dict[str, etree._Element] = {}
    for segment in parent.iter("seg"):
        identifier = required(path, segment, "id")
        if identifier in found:
            raise InputError.at(path, line_of(segment), f"{name}: <seg id={identifier!r}> occurs twice")
        found[identifier] = segment
    return found


def check_same_ids(
    path: PathLike, line: int, name: str, source: Mapping[str, object], target: Mapping[str, object], target_name: str
) -> None:
    """Does nothing if both sides have the same segment ids.

    Raises:
        InputError: they differ; says how many segments each has and the first ids that one side lacks.
    """
    if source.keys() == target.keys():
        return
    lacking = [identifier for identifier in source if identifier not in target]
    extra = [identifier for identifier in target if identifier not in source]
    details = [f"without counterpart in {target_name}: {_some(lacking)}"] if lacking else []
    details += [f"in {target_name} only: {_some(extra)}"] if extra else []
    raise InputError.at(
        path, line, f"{name}: {len(source)} source segments, {len(target)} in {target_name}; ids {'; '.join(details)}"
    )


def _some(identifiers: List[str]) -> str:
    shown = ", ".join(identifiers[:5])
    return shown if len(identifiers) <= 5 else f"{shown}, ... ({len(identifiers)} in all)"
