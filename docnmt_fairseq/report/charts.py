"""Line charts as SVG that stands in the page."""

import math
from dataclasses import dataclass
from html import escape
from typing import List, Mapping, Sequence, Tuple

from docnmt_fairseq.evaluation.plots import COLOURS

WIDTH, HEIGHT = 430, 290
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 28, 44
DASHES = ("", "6 3", "2 3", "8 3 2 3")  # lines differ in more than their colour

Points = Sequence[Tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """A range of values, with room around it, and round numbers to mark."""

    low: float
    high: float
    label: str

    @classmethod
    def around(cls, values: Sequence[float], label: str) -> "Axis":
        """The axis of some values, at least one."""
        low, high = min(values), max(values)
        room = 0.05 * (high - low) or 0.5 * abs(low) or 0.5  # also where all are the same
        return cls(low - room, high + room, label)

    def ticks(self) -> List[float]:
        """About five round numbers inside the range."""
        raw = (self.high - self.low) / 6
        size = 10 ** math.floor(math.log10(raw))
        step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw)
        first = math.ceil(self.low / step)
        return [step * n for n in range(first, math.floor(self.high / step) + 1)]

    def place(self, value: float, start: float, end: float) -> float:
        """Where a value stands between two places."""
        return start + (value - self.low) / (self.high - self.low) * (end - start)


def line_chart(title: str, series: Mapping[str, Points], x: Axis, y: Axis) -> str:
    """A chart with a line and a legend entry for each series; what it shows is also its accessible name."""
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
    turned = f'transform="rotate(-90 13 {middle})"'
    parts.append(f'<text x="13" y="{middle}" text-anchor="middle" {turned}>{escape(y.label)}</text>')
    for number, points in enumerate(series.values()):
        places = [(x.place(a, LEFT, right), y.place(b, bottom, TOP)) for a, b in points]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke-width="2" {_stroke(number)}/>')
        if len(points) <= 20:
            dots = (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{_colour(number)}"/>' for a, b in places)
            parts.extend(dots)
    name = escape(f"{title}: {y.label} by {x.label} of {', '.join(series)}")
    picture = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{name}">'
        f"{''.join(parts)}</svg>"
    )
    return f"<figure>{picture}{_legend(list(series))}</figure>"


def _legend(names: List[str]) -> str:
    entries = (
        f'<span><svg width="28" height="10" aria-hidden="true"><line x1="0" x2="28" y1="5" y2="5" stroke-width="2" '
        f"{_stroke(number)}/></svg> {escape(name)}</span>"
        for number, name in enumerate(names)
    )
    return f'<figcaption class="legend">{"".join(entries)}</figcaption>'


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _stroke(number: int) -> str:
    dashes = DASHES[number // len(COLOURS) % len(DASHES)] if number >= len(COLOURS) else DASHES[number % len(DASHES)]
    return f'stroke="{_colour(number)}" stroke-dasharray="{dashes}"' if dashes else f'stroke="{_colour(number)}"'


def bar_chart(title: str, shares: Mapping[str, float], chance: float) -> str:
    """A chart with a horizontal bar for each share from 0 to 1, and a dashed line at ``chance``."""
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
    name = escape(f"{title}: " + ", ".join(f"{key} {100 * share:.1f} %" for key, share in shares.items()))
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{name}">{"".join(parts)}</svg></figure>'
    )
