"""Blocks of code, tables and links of the documentation."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>(?:(?!-->).)*?) -->\n+)?"
    r"^```(?P<language>\w*)(?: title=\"(?P<title>.*?)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """Block of code of a page.

    Attributes:
        page: page.
        line: first line, from 1.
        language: language.
        title: name of the file that it shows, if any.
        mark: comment before the block, for tests.
        text: lines.
    """

    page: Path
    line: int
    language: str
    title: Optional[str]
    mark: Optional[str]
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Yields the blocks of code of a page in these languages."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found["language"] in languages:
            line = text.count("\n", 0, found.start("text"))
            yield Block(page, line, found["language"], found["title"], found["mark"], found["text"])


def tables(page: Path, *header: str) -> Iterator[List[str]]:
    """Yields the rows of all tables of a page with this header."""
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else None
        if cells is None:
            inside = False
        elif cells == list(header):
            inside = True
        elif inside and set("".join(cells)) != {"-"} and not line.startswith("| ---"):
            yield cells


def titled(page: Path) -> Dict[str, str]:
    """Returns the files that a page shows, by name."""
    return {block.title: block.text for block in blocks(page, "text", "python", "yaml", "bash") if block.title}
