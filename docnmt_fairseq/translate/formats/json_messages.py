"""Messages of programs in JSON: nested files as of i18next, Chrome's messages.json, Flutter's ARB."""

import json
import re
from dataclasses import dataclass
from typing import Any, Iterator, List, Tuple

from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Mark, objects_in
from docnmt_fairseq.translate.formats.messages import DIVISION, Message, marks_of_message

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
ARGUMENT = re.compile(r"\$\d")  # of Chrome
VALUES_PER_SENTENCE = 4


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
        is_chrome = _is_chrome(json.loads(text))
        values = [value for value in _values(text) if _is_message(value.keys, is_chrome)]
        self.reading.limits.check(len(values), "values", name, VALUES_PER_SENTENCE)
        messages = [Message(value.text, _marks, DIVISION) for value in values]

        def render(pieces: List[Pieces]) -> bytes:
            new, behind = iter(pieces), 0
            found: List[str] = []
            for value, message in zip(values, messages):
                translation = message.render(new)
                written = text[value.start : value.end]
                if translation != value.text:
                    written = json.dumps(translation, ensure_ascii=False)
                found += [text[behind : value.start], written]
                behind = value.end
            return "".join([*found, text[behind:]]).encode("utf-8", "backslashreplace")  # lone surrogates

        return Parsed([segment for message in messages for segment in message.segments()], render)


def _is_chrome(data: Any) -> bool:
    """Returns whether a file is Chrome's messages.json."""
    if not isinstance(data, dict) or not data:
        return False
    return all(isinstance(entry, dict) and isinstance(entry.get("message"), str) for entry in data.values())


def _is_message(keys: Tuple[str, ...], is_chrome: bool) -> bool:
    """Returns whether a value is translated: not descriptions, ARB's metadata (@key) and schemas ($schema)."""
    if is_chrome:
        return len(keys) == 2 and keys[1] == "message"
    return not any(key.startswith(("@", "$", "_comment")) for key in keys)


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


def _marks(text: str) -> Iterator[Mark]:
    yield from marks_of_message(text)
    yield from objects_in(text, ARGUMENT)
