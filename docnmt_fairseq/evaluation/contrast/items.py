"""Items of contrastive test sets, and the JSON fields that readers take them from."""

import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)

T = TypeVar("T")
Attribute = Union[int, str]


@dataclass(frozen=True, eq=False)
class ItemDocument:
    """Document of one or more items, which share the object."""

    name: str  # items of documents of the same name are resampled together
    source: Tuple[str, ...]  # lines, sentences and <p>
    target: Optional[Tuple[str, ...]] = None  # with the same boundaries; None without target-side context


@dataclass(frozen=True)
class ContrastItem:
    """Item with candidate translations."""

    name: str  # in messages and results
    document: ItemDocument
    candidates: Tuple[Mapping[int, str], ...]  # translations by line of the document, all of the same lines
    right: int = 0  # index of the correct candidate
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # groups, such as {"distance": 1}

    @property
    def lines(self) -> List[int]:
        """Judged lines of the document, ascending."""
        return sorted(self.candidates[0])


@dataclass(frozen=True)
class GenerationItem:
    """Item that is answered by translating one line of a document: the expected form must occur."""

    name: str
    document: ItemDocument
    line: int
    expected: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def checked(item: ContrastItem) -> ContrastItem:
    """Returns the item without incorrect candidates that equal the correct one, with a warning.

    Published sets contain such candidates, which would be ties for every model.

    Raises:
        InputError: no incorrect candidate; names the item.
    """
    texts = [tuple(candidate[line] for line in item.lines) for candidate in item.candidates]
    kept = [number for number, text in enumerate(texts) if number == item.right or text != texts[item.right]]
    if len(kept) < 2:
        raise InputError(f"{item.name}: needs an incorrect translation that differs from the correct one")
    if len(kept) < len(texts):
        logger.warning(f"{item.name}: dropped {len(texts) - len(kept)} candidates equal to the correct translation")
        item = replace(item, candidates=tuple(item.candidates[number] for number in kept), right=kept.index(item.right))
    return item


def distance_group(distance: int) -> str:
    """Group of a distance: 0 to 3, and larger distances together, as in ContraPro."""
    return str(distance) if distance <= 3 else "> 3"


def read_json(path: Path, kind: Type[T]) -> T:
    """Reads a JSON list or object.

    Raises:
        InputError: not JSON, empty, or of another type.
    """
    try:
        content = json.loads("\n".join(read_lines(path)))
    except ValueError:
        content = None
    if not isinstance(content, kind) or not content:
        raise InputError(f"{path}: expected a JSON {kind.__name__} of items")
    return content


@contextmanager
def item_errors(where: str) -> Iterator[None]:
    """Names the item in errors of missing or invalid fields.

    Raises:
        InputError: instead of errors of Python.
    """
    try:
        yield
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: missing or invalid field ({type(error).__name__}: {error})") from error
