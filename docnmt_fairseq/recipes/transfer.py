"""One download: goes on behind what an interrupted one left, if that is of the same content.

Beside the unfinished file stands what the server said of the content: its validator (RFC 9110, section 8.8) and its
size. The rest is asked for on condition that the validator is still the same (section 13.1.5), and sizes are compared.
"""

import json
import re
import shutil
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from typing import IO, Mapping, Optional, Tuple

from docnmt_fairseq.corpus.files import atomic_write_bytes
from docnmt_fairseq.plain_json import parse_json

TIMEOUT = 60  # seconds without any data
BLOCK = 1 << 20
BROKEN_OFF = "the connection broke off; run again to go on"
CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


@dataclass(frozen=True)
class Content:
    """What a URL held when a download of it began.

    Attributes:
        url: the URL.
        validator: changes with the content; None: the server said none.
        size: bytes; None: it did not say how many.
    """

    url: str
    validator: Optional[str]
    size: Optional[int]


def about(partial: Path) -> Path:
    """The file beside an unfinished one that says what that is of."""
    return partial.with_name(f"{partial.name}.json")


def transfer(url: str, partial: Path) -> None:
    """Writes what a URL holds, going on behind what is there already of the same content.

    Args:
        url: what to fetch.
        partial: file to write; whole when this returns, else to be gone on with.

    Raises:
        OSError: there is no network or no such content, or the connection broke off.
        ValueError: the URL is none.
    """
    begun = _begun(url, partial)
    done = partial.stat().st_size if begun is not None else 0
    if begun is not None and done == begun.size:
        return
    headers = {"Range": f"bytes={done}-"} if done else {}
    if begun is not None and begun.validator:
        headers["If-Range"] = begun.validator
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
            if answer.status != 206:
                begun, done = _begin(url, partial, answer.headers), 0
            elif begun is None or not _fits(answer.headers, begun, done):
                return _anew(url, partial)
            with open(partial, "ab") as stream:
                _copy(answer, stream)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        if _range(error.headers.get("Content-Range")) != (None, done):  # else there is no more than what is here
            return _anew(url, partial)
    except HTTPException as error:
        raise OSError(BROKEN_OFF) from error
    if begun is not None and begun.size not in (None, partial.stat().st_size):
        raise OSError(BROKEN_OFF)


def _copy(answer: IO[bytes], stream: IO[bytes]) -> None:
    try:
        shutil.copyfileobj(answer, stream, BLOCK)
    except IncompleteRead as error:
        stream.write(error.partial)
        raise


def _begun(url: str, partial: Path) -> Optional[Content]:
    """What an unfinished file is of; None: nothing that could be gone on with."""
    try:
        content = Content(**parse_json(about(partial).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    known = content.url == url and (content.validator or content.size)
    return content if known and partial.exists() else None


def _begin(url: str, partial: Path, headers: Mapping[str, str]) -> Content:
    """Empties the file, and notes what it is going to hold."""
    tag = headers.get("ETag")
    validator = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified")
    size = headers.get("Content-Length")
    content = Content(url, validator, int(size) if size and size.isdigit() else None)
    partial.unlink(missing_ok=True)
    atomic_write_bytes(about(partial), json.dumps(asdict(content)).encode())
    return content


def _anew(url: str, partial: Path) -> None:
    partial.unlink(missing_ok=True)
    return transfer(url, partial)


def _fits(headers: Mapping[str, str], begun: Content, done: int) -> bool:
    """Whether an answer is the rest of what was begun."""
    start, total = _range(headers.get("Content-Range"))
    return start == done and (begun.size is None or total in (None, begun.size))


def _range(told: Optional[str]) -> Tuple[Optional[int], Optional[int]]:
    """First byte and size of the whole that ``Content-Range`` tells; None: it does not."""
    found = CONTENT_RANGE.fullmatch((told or "").strip())
    start, total = found.groups() if found else (None, None)
    return int(start) if start else None, int(total) if total and total != "*" else None
