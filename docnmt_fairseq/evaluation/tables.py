"""Rendering of reports as text for a terminal or as Markdown."""

from dataclasses import dataclass
from typing import Iterable, Sequence, Union

STYLES = ("text", "markdown")


@dataclass(frozen=True)
class Table:
    """Table whose first row is the header, with an optional heading above it."""

    rows: Sequence[Sequence[str]]
    title: str = ""


@dataclass(frozen=True)
class Definitions:
    """List of names and their values, one per line; ``code`` sets the values in monospace in Markdown."""

    pairs: Sequence[Sequence[str]]
    title: str = ""
    code: bool = False


Part = Union[str, Table, Definitions]  # of a report; a string is a paragraph


def render(parts: Iterable[Part], style: str = "text") -> str:
    """Renders the parts of a report, separated by empty lines.

    Args:
        parts: paragraphs, tables and lists in order.
        style: one of ``STYLES``.
    """
    blocks = []
    for part in parts:
        if isinstance(part, str):
            blocks.append(part)
            continue
        if part.title:
            blocks.append(f"**{part.title}**" if style == "markdown" else part.title)
        if isinstance(part, Table):
            blocks.append(markdown(part.rows) if style == "markdown" else aligned(part.rows))
        elif style == "markdown":
            quote = "`" if part.code else ""
            blocks.append("\n".join(f"- {name}: {quote}{value}{quote}" for name, value in part.pairs))
        else:
            width = max(len(name) for name, _ in part.pairs)
            blocks.append("\n".join(f"{name:{width}}  {value}" for name, value in part.pairs))
    return "\n\n".join(blocks)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Formats rows as columns padded with spaces; the first column is left-aligned, the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Formats rows as a Markdown table; the first row is the header."""
    header, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
