"""Messages of programs in JSON: nested files as of i18next, Chrome's messages.json, Flutter's ARB."""

import json
import re
from dataclasses import dataclass
from typing import Any, Iterator, List, Optional, Tuple, Union

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Mark, Marked, marks_of_message
from docnmt_fairseq.translate.formats.markup_projection import Gap

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
LINE = re.compile(r"[^\n]*\n|[^\n]+")
# In addition to those of other messages: Chrome's $NAME$ and $1, i18next's {{ name }} and $t(key), Vue's @:key, Ruby's
# %{name}; in plural forms, # is the number.
PLACEHOLDER = re.compile(r"\$\w+\$|\$\d|\$t\([^()]*\)|@(?:\.\w+)?:[\w.]+|\{\{[^{}]*\}\}|%?\{\s*[\w.-]+\s*\}")
NUMBER = re.compile("#")
ELEMENT = re.compile(r"<(/?)\d+(/?)>")  # of react-i18next
CHOICE = re.compile(r"\s*\{\s*[\w.-]+\s*,\s*(?:plural|selectordinal|select)\s*,(?:\s*offset:\d+)?")
BRANCH = re.compile(r"\s*(?:=\d+|[\w-]+)\s*\{")
BRACE = re.compile("[{}]")
VALUES_PER_SENTENCE = 4

Part = Union[str, Marked]


@dataclass(frozen=True)
class Value:
    """String of a file: its span with quotation marks, the keys that lead to it, and its text."""

    start: int
    end: int
    keys: Tuple[str, ...]
    text: str


@register("json")
class JsonMessages(WholeFile):
    """String values are translated; keys, other values, placeholders and layout stay."""

    help = "messages in JSON: nested keys as of i18next, Chrome's messages.json, Flutter's ARB"
    endings = (".json", ".arb")

    def parse(self, content: bytes, name: str) -> Parsed:
        text = decode(content, name)
        is_chrome = _is_chrome(_loaded(text, name))
        values = [value for value in _values(text) if _is_message(value.keys, is_chrome)]
        self.reading.limits.check(len(values), "values", name, VALUES_PER_SENTENCE)
        messages = [_parts(value.text) for value in values]
        segments = [
            part.segment(new_paragraph=number == 0)
            for parts in messages
            for number, part in enumerate(part for part in parts if isinstance(part, Marked))
        ]

        def render(pieces: List[Pieces]) -> bytes:
            new, behind = iter(pieces), 0
            found: List[str] = []
            for value, parts in zip(values, messages):
                message = "".join(part.render(next(new)) if isinstance(part, Marked) else part for part in parts)
                written = text[value.start : value.end]
                if message != value.text:
                    written = json.dumps(message, ensure_ascii=False)
                found += [text[behind : value.start], written]
                behind = value.end
            return "".join([*found, text[behind:]]).encode("utf-8", "backslashreplace")  # lone surrogates

        return Parsed(segments, render)


def _loaded(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError.at(name, error.lineno, f"not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{name}: not JSON that can be read: {error}") from error


def _is_chrome(data: Any) -> bool:
    """Returns whether a file is Chrome's messages.json."""
    if not isinstance(data, dict) or not data:
        return False
    return all(isinstance(entry, dict) and isinstance(entry.get("message"), str) for entry in data.values())


def _is_message(keys: Tuple[str, ...], is_chrome: bool) -> bool:
    """Returns whether a value is translated: not descriptions, ARB's metadata (@key) and schemas ($schema)."""
    if is_chrome:
        return len(keys) == 2 and keys[1] == "message"
    return not any(key.startswith(("@", "$")) for key in keys)


def _values(text: str) -> Iterator[Value]:
    """Yields the strings of a file that are not keys."""
    opened: List[str] = []
    keys: List[str] = []  # the current one of each open object, "" of arrays
    is_key = False
    for token in TOKEN.finditer(text):
        sign = token[0]
        if sign in ("{", "["):
            opened.append(sign)
            keys.append("")
        elif sign in ("}", "]"):
            opened.pop()
            keys.pop()
        if sign in ("{", ","):
            is_key = opened[-1] == "{"
        elif sign in (":", "["):
            is_key = False
        elif sign.startswith('"') and is_key:
            keys[-1] = json.loads(sign)
        elif sign.startswith('"'):
            yield Value(*token.span(), tuple(keys), json.loads(sign))


def _parts(message: str, number: bool = False) -> List[Part]:
    """Returns the texts of a message and what is in between: of a plural or selection, the text of each branch.

    Args:
        message: message, or branch of one.
        number: # is a placeholder.
    """
    branches = _branches(message)
    if branches is None:
        return [Marked(line, _marks(line, number)) for line in LINE.findall(message)]
    parts: List[Part] = []
    behind = 0
    for start, end in branches:
        parts += [message[behind:start], *_parts(message[start:end], number=True)]
        behind = end
    return [*parts, message[behind:]]


def _branches(message: str) -> Optional[List[Tuple[int, int]]]:
    """Returns the spans of the branches if a message is a plural or selection of ICU as a whole; otherwise None."""
    head = CHOICE.match(message)
    found: List[Tuple[int, int]] = []
    place = head.end() if head else 0
    while head and (branch := BRANCH.match(message, place)):
        depth = 1
        for brace in BRACE.finditer(message, branch.end()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                found.append((branch.end(), brace.start()))
                place = brace.end()
                break
        else:
            return None
    return found if found and message[place:].strip() == "}" else None


def _marks(line: str, number: bool) -> Iterator[Mark]:
    yield from marks_of_message(line)
    for pattern in (PLACEHOLDER, NUMBER) if number else (PLACEHOLDER,):
        for found in pattern.finditer(line):
            yield *found.span(), Gap.OBJECT
    for found in ELEMENT.finditer(line):
        yield *found.span(), Gap.CLOSE if found[1] else Gap.OBJECT if found[2] else Gap.OPEN
