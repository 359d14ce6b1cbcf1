"""Tables as text: aligned for a terminal, or Markdown."""

from typing import List, Sequence


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lays rows of equally many cells out in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Lays rows of equally many cells out as a table of Markdown, the first row its header."""
    header, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines: List[List[str]] = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
