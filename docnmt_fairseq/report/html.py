"""HTML elements and SVG charts of pages; all text is escaped."""

import json
import math
import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from docnmt_fairseq.corpus.subwords import WORD_BEGINS, decode_bytes
from docnmt_fairseq.evaluation.plots import COLOURS
from docnmt_fairseq.evaluation.words import UNSPACED as SCRIPTS_WITHOUT_SPACES

JOINED = "@@"  # end of a continued subword of subword-nmt
END = "</s>"
LABELS = {END: "end of sentence", WORD_BEGINS: "beginning of a word"}
UNSPACED = re.compile(f"[{SCRIPTS_WITHOUT_SPACES}]")

WIDTH, HEIGHT = 430, 290  # of charts
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 28, 44
DASHES = ("", "6 3", "2 3", "8 3 2 3")  # lines differ in colour and pattern

Points = Sequence[Tuple[float, float]]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Table with its own horizontal scroll bar."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def as_script(data: Any) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def asset(name: str) -> str:
    """Text of a file in ``assets``."""
    return (files("docnmt_fairseq.report") / "assets" / name).read_text(encoding="utf-8")


def display_text(token: str) -> str:
    """Token without its subword marker."""
    token = token.removesuffix(JOINED) if token != JOINED else token
    return token.removeprefix(WORD_BEGINS) or token


class Word(NamedTuple):
    """Word of a sentence: text, number of its tokens, and whether a space precedes it.

    The end of the sentence is a word without text.
    """

    text: str
    tokens: int
    spaced: bool


def words_of(tokens: Sequence[str], has_pieces: bool) -> List[Word]:
    """Joins tokens to words; in scripts without spaces every token is a word.

    Args:
        tokens: tokens with end of sentence.
        has_pieces: SentencePiece marks the beginnings of words.
    """
    words: List[Word] = []
    joined = spaced = False
    pending = 0  # tokens without text, which belong to the next word
    for token, text in zip(tokens, decode_bytes(tokens)):
        shown = "" if text in ("", WORD_BEGINS, END) else display_text(text)
        spaced |= not joined and (not has_pieces or text.startswith(WORD_BEGINS))
        joined = token.endswith(JOINED) and token != JOINED
        if not shown and token != END:
            pending += 1
        elif shown and words and words[-1].text and not (spaced or UNSPACED.match(shown)):
            last = words.pop()
            words.append(Word(last.text + shown, last.tokens + pending + 1, last.spaced))
            pending = 0
        else:
            words.append(Word(shown, pending + 1, spaced))
            pending, spaced = 0, False
    return words


def words_html(sentences: List[List[str]], side: str, active: bool) -> Iterable[str]:
    """Yields each sentence with one button per word if ``active``, otherwise as text.

    ``data-w`` is the number of the first token of the word in the document, ``data-n`` the number of its tokens.
    """
    has_pieces = any(WORD_BEGINS in token for tokens in sentences for token in tokens)
    number = 0
    for tokens in sentences:
        html = ""
        for text, count, spaced in words_of(tokens, has_pieces):
            space = " " if spaced or not text else ""
            html += space + (_button(text, side, number, count) if active else escape(text))
            number += count
        yield html.strip()


def _button(text: str, side: str, number: int, count: int) -> str:
    kind = 'class="w word"' if text else f'class="w mark" aria-label="{LABELS[END]}" title="{LABELS[END]}"'
    attributes = f'{kind} tabindex="-1" data-side="{side}" data-w="{number}" data-n="{count}"'
    return f'<button type="button" {attributes}>{escape(text)}</button>'


@dataclass(frozen=True)
class Axis:
    """Range of values with round tick marks."""

    low: float
    high: float
    label: str

    @classmethod
    def around(cls, values: Sequence[float], label: str) -> "Axis":
        """Axis around values, at least one, with a margin."""
        low, high = min(values), max(values)
        margin = 0.05 * (high - low) or 0.5 * abs(low) or 0.5  # also for a single value
        return cls(low - margin, high + margin, label)

    def ticks(self) -> List[float]:
        """About five round numbers inside the range."""
        raw = (self.high - self.low) / 6
        size = 10 ** math.floor(math.log10(raw))
        step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
        first = math.ceil(self.low / step)
        return [step * n for n in range(first, math.floor(self.high / step) + 1)]

    def place(self, value: float, start: float, end: float) -> float:
        """Coordinate of a value between two coordinates."""
        return start + (value - self.low) / (self.high - self.low) * (end - start)


def line_chart(title: str, series: Mapping[str, Points], x: Axis, y: Axis) -> str:
    """Line chart with a legend and an accessible name."""
    parts = [f'<text x="{LEFT}" y="16" font-weight="600">{escape(title)}</text>']
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in y.ticks():
        place = y.place(value, bottom, TOP)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{place:.1f}" y2="{place:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in x.ticks():
        place = x.place(value, LEFT, right)
        parts.append(f'<text x="{place:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" stroke="#57606a"/>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x.label)}</text>')
    middle = (TOP + bottom) / 2
    rotation = f'transform="rotate(-90 13 {middle})"'
    parts.append(f'<text x="13" y="{middle}" text-anchor="middle" {rotation}>{escape(y.label)}</text>')
    for number, points in enumerate(series.values()):
        places = [(x.place(a, LEFT, right), y.place(b, bottom, TOP)) for a, b in points]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke-width="2" {_stroke(number)}/>')
        if len(points) <= 20:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{_colour(number)}"/>' for a, b in places]
    name = f"{title}: {y.label} by {x.label} of {', '.join(series)}"
    legend = "".join(
        f'<span><svg width="28" height="10" aria-hidden="true"><line x1="0" x2="28" y1="5" y2="5" stroke-width="2" '
        f"{_stroke(number)}/></svg> {escape(series_name)}</span>"
        for number, series_name in enumerate(series)
    )
    return _figure(HEIGHT, name, parts, f'<figcaption class="legend">{legend}</figcaption>')


def bar_chart(title: str, shares: Mapping[str, float], chance: float) -> str:
    """Chart with a horizontal bar for each share from 0 to 1, and a dashed line at ``chance``."""
    row, left = 24, 78
    height = TOP + row * len(shares) + 26
    axis = Axis(0, max(0.05, chance, *shares.values()) * 1.15, "")
    parts = [f'<text x="4" y="16" font-weight="600">{escape(title)}</text>']
    for number, (name, share) in enumerate(shares.items()):
        top, end = TOP + row * number, axis.place(share, left, WIDTH - RIGHT)
        parts.append(f'<text x="{left - 6}" y="{top + 15}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<rect x="{left}" y="{top + 3}" width="{end - left:.1f}" height="{row - 8}" fill="{COLOURS[5]}"/>'
        )
        parts.append(f'<text x="{left + 4}" y="{top + 15}">{100 * share:.1f} %</text>')
    place = axis.place(chance, left, WIDTH - RIGHT)
    bottom = height - 24
    line = f'x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{bottom}" stroke="#1b1f24" stroke-dasharray="4 3"'
    anchor = "start" if place < WIDTH / 2 else "end"
    parts.append(f'<line {line}/><text x="{place:.1f}" y="{height - 8}" text-anchor="{anchor}">by chance</text>')
    return _figure(
        height, f"{title}: " + ", ".join(f"{key} {100 * share:.1f} %" for key, share in shares.items()), parts
    )


def _figure(height: int, name: str, parts: List[str], caption: str = "") -> str:
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(name)}">{"".join(parts)}</svg>{caption}</figure>'
    )


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _stroke(number: int) -> str:
    dashes = DASHES[number // len(COLOURS) % len(DASHES)] if number >= len(COLOURS) else DASHES[number % len(DASHES)]
    return f'stroke="{_colour(number)}" stroke-dasharray="{dashes}"' if dashes else f'stroke="{_colour(number)}"'
