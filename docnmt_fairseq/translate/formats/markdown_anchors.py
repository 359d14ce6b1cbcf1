"""Addresses of headings in Markdown, which dialects derive from their text: #getting-started."""

import re
from collections import Counter
from typing import Dict, List, Sequence
from urllib.parse import unquote

LINK = re.compile(r"""(?:\]\(\s*<?|\]:\s*<?|href\s*=\s*["']?)#([^\s)>"']+)""")
OTHER_FILE = re.compile(r"""(?:\]\(\s*<?|\]:\s*<?)(?![a-z]+:)[^\s)>#]+\.mdx?#[^\s)>]+""")
TARGET = re.compile(r"\]\([^()]*\)")
OWN = re.compile(r"\{[^{}]*#[^{}]+\}|<a\s[^<>]*(?:id|name)\s*=", re.IGNORECASE)  # address in the heading itself


def letters(text: str) -> str:
    """Returns what the dialects keep of a heading in its address, without the signs in between."""
    return re.sub(r"[\W_]+", "", TARGET.sub("", text)).lower()


def addresses_of(headings: Sequence[str], text: str) -> List[str]:
    """Returns the address of each heading that the text has a link to; "" for the others."""
    links: Dict[str, str] = {letters(unquote(link)): unquote(link) for link in LINK.findall(text)}
    seen: Counter[str] = Counter()
    found = []
    for heading in headings:
        own = letters(heading)
        number = seen[own]
        seen[own] += 1
        found.append("" if OWN.search(heading) or not own else links.get(f"{own}{number or ''}", ""))
    return found


def links_to_other_files(text: str) -> int:
    """Returns the number of links to headings of other files."""
    return len(OTHER_FILE.findall(text))
