"""Rows of tables that hold a document each, as corpora of whole documents come: JSON lines, Parquet."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Iterator, List, Sequence, Tuple

from docnmt_fairseq.corpus.document import Document, DocumentBuilder
from docnmt_fairseq.corpus.readers.base import Reader, ReaderOptions
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.marks import MOST_LEVELS, boundary, levels_ended
from docnmt_fairseq.options import option


@dataclass(frozen=True)
class RowOptions(ReaderOptions):
    """Where in a row the sides are."""

    fields: Sequence[str] = option(
        (),
        "SOURCE TARGET, which hold the sides of a document: lists of sentences, of paragraphs, of sections, ..., or "
        "text with a sentence a line; a.b is b in a, of each entry where a is a list (default: the languages)",
        metavar="FIELD",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        shown = self.fields if isinstance(self.fields, str) else " ".join(self.fields)
        if isinstance(self.fields, str) or len(self.fields) not in (0, 2):
            raise InputError(f"--fields {shown}: expected SOURCE TARGET")
        object.__setattr__(self, "fields", tuple(self.fields))


class RowReader(Reader):
    """What readers of documents in rows have in common: any number of files, and where in a row the sides are."""

    files = "one or more files"
    Options = RowOptions

    options: RowOptions

    def resolve(self, arguments: Sequence[str]) -> List[Path]:
        """The files."""
        return [Path(argument) for argument in arguments]

    @property
    def fields(self) -> List[str]:
        """Where in a row each side is."""
        return list(self.options.fields or self.reading.languages)[: self.sides]

    def documents(self, path: Path, rows: Iterable[Tuple[int, Any]]) -> Iterator[Document]:
        """Yields the documents of a file's rows, which are given with their numbers; one without any text is none.

        Raises:
            InputError: a side is missing, is no text, or has other lines than the first.
        """
        for number, row in rows:
            sides = [_lines(path, number, field, _value(path, number, row, field)) for field in self.fields]
            for field, lines in zip(self.fields, sides):
                if len(lines) != len(sides[0]):
                    message = (
                        f"{len(sides[0])} sentences in {self.fields[0]}, but {len(lines)} in {field}; as many are "
                    )
                    raise InputError.at(path, number, message + "needed, each the translation of the other")
            builder = DocumentBuilder((str(path),) * self.sides)
            for texts in zip(*sides):
                levels = [levels_ended(text) for text in texts]
                if min(levels) < max(levels):
                    message = (
                        f"{boundary(max(levels))} on one side only; both sides end paragraphs and sections together"
                    )
                    raise InputError.at(path, number, message)
                if levels[0] or not any(texts):
                    builder.end_paragraph(max(levels[0], 1))
                else:
                    builder.add(texts, (number,) * self.sides)
            if not builder.empty:
                yield builder.end_document()


def _value(path: Path, number: int, row: Any, field: str) -> Any:
    """What a row has at a.b.c; of each entry where there is a list on the way."""
    name, _, rest = field.partition(".")
    if not isinstance(row, dict) or name not in row:
        has = f"it has {', '.join(map(str, row))}" if isinstance(row, dict) else "it is no object with fields"
        raise InputError.at(path, number, f"no {name} in the row: {has}; see --fields")
    value = row[name]
    if not rest:
        return value
    if isinstance(value, list):
        return [_value(path, number, entry, rest) for entry in value]
    return _value(path, number, value, rest)


def _lines(path: Path, number: int, field: str, value: Any) -> List[str]:
    """A side's sentences, with marks between paragraphs, sections, ...."""
    if isinstance(value, str):
        return [line.strip() for line in value.split("\n")]
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return [" ".join(entry.split()) for entry in value]
    if isinstance(value, list) and all(isinstance(entry, list) for entry in value):
        levels = _depth(value) - 1
        if levels > MOST_LEVELS:
            raise InputError.at(
                path, number, f"{field}: lists in lists, {levels} levels of them; {MOST_LEVELS} are known"
            )
        return [line for unit in value for line in (*_lines(path, number, field, unit), boundary(levels))]
    raise InputError.at(path, number, f"{field}: neither text nor a list of sentences; see --fields")


def _depth(value: Any) -> int:
    """How many lists are in one another."""
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0
