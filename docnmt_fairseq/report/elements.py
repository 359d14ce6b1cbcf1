"""Pieces of HTML that the parts of a page have in common; whatever stands in them, it stands there as text."""

import json
from html import escape
from importlib.resources import files
from typing import Any, Iterable, List, Sequence

from docnmt_fairseq.corpus.subwords import WORD_BEGINS, decode_bytes

JOINED = "@@"  # ends a subword of subword-nmt that is joined to the next
LABELS = {"</s>": "end of sentence", WORD_BEGINS: "beginning of a word", "": "byte of the next character"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """An HTML table, which scrolls by itself where it is too wide."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def as_script(data: Any) -> str:
    """JSON that can stand in a script element whatever its strings hold."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def display_text(token: str) -> str:
    """A token as people read it, without the mark of its subword."""
    token = token.removesuffix(JOINED) if token != JOINED else token
    return token.removeprefix(WORD_BEGINS) or token


def buttons(sentences: List[List[str]], side: str, active: bool) -> Iterable[str]:
    """Yields each sentence with a button a token, or as text where nothing is known of them; no word is broken."""
    pieces = any(WORD_BEGINS in token for tokens in sentences for token in tokens)
    number = 0
    for tokens in sentences:
        words: List[List[str]] = []
        joined = False
        for token, text in zip(tokens, decode_bytes(tokens)):
            end = token == "</s>"
            begins = not (joined or (pieces and not token.startswith(WORD_BEGINS))) or end or not words
            joined = token.endswith(JOINED) and token != JOINED
            alone = "" if end or token == WORD_BEGINS else escape(display_text(text))
            text = _button(text, side, number) if active else alone
            words += [[]] if begins else []
            words[-1].append(text)
            number += 1
        if active:
            yield " ".join(f'<span class="word">{"".join(word)}</span>' for word in words)
        else:
            yield " ".join("".join(word) for word in words).strip()


def _button(token: str, side: str, number: int) -> str:
    label = LABELS.get(token)
    cls, label = ("w", "") if label is None else ("w mark", f' aria-label="{label}"')
    attributes = f'class="{cls}" tabindex="-1" data-side="{side}" data-w="{number}"{label}'
    return f'<button type="button" {attributes}>{escape(display_text(token))}</button>'


def asset(name: str) -> str:
    """The text of a file of the pages."""
    return (files("docnmt_fairseq.report") / "assets" / name).read_text(encoding="utf-8")
