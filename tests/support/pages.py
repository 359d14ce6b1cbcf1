"""What the tests of the documentation read from its pages: blocks of code, tables, links."""

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
    """A block of code of a page.

    Attributes:
        page: the page.
        line: where it begins, from 1.
        language: as the page says.
        title: the file that it is, if the page says so.
        mark: what a comment right before it says to tests.
        text: its lines.
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
    """The blocks of code of a page in these languages."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found["language"] in languages:
            line = text.count("\n", 0, found.start("text"))
            yield Block(page, line, found["language"], found["title"], found["mark"], found["text"])


def tables(page: Path, *header: str) -> Iterator[List[str]]:
    """The rows of all tables of a page that have this header."""
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
    """The files that a page shows, by name."""
    return {block.title: block.text for block in blocks(page, "text", "python", "yaml", "bash") if block.title}
