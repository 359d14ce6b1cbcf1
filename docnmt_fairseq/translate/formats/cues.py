"""Subtitles: cues keep their times, places and markup; sentences go through them, and are laid back into them."""

import logging
import re
from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed
from docnmt_fairseq.translate.formats.inline import Marked, Token, same
from docnmt_fairseq.translate.formats.units import Gap

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
LINE_END = re.compile(r"(?:\r\n|\r|\n)\Z")
ARROW = "-->"
CLOCK = r"-?(?:\d+:)?\d+:\d+(?:[.,]\d+)?"
TIMES = re.compile(rf"\s*(?P<start>{CLOCK})\s*{ARROW}\s*(?P<end>{CLOCK})(?=\s|$)", re.ASCII)
PAUSE = 3.0  # seconds without a subtitle after which a paragraph begins

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CueMarkup:
    """How text is written in cues.

    Attributes:
        tokens: of a line.
        plain, escape: characters that are written otherwise.
        notes: whether text may stand outside of cues, as notes do.
    """

    tokens: Callable[[str], Iterator[Token]]
    plain: Callable[[str], str] = same
    escape: Callable[[str], str] = same
    notes: bool = False


@dataclass(frozen=True)
class Cue:
    """One subtitle: where its lines of text are among those of the file, and when it is shown, in seconds."""

    first: int
    end: int
    start_time: float
    end_time: float


def parse_cues(text: str, name: str, markup: CueMarkup) -> Parsed:
    """The subtitles of a file; what is between their texts stays as it is.

    Args:
        text: of the file.
        name: of it, for messages.
        markup: of the subtitles' text.

    Raises:
        InputError: there are no subtitles in it, or one without times.
    """
    lines = LINE.findall(text)
    cues = list(_cues(lines, name))
    if not cues and text.strip() and not text.startswith("WEBVTT"):
        raise InputError(f"{name}: no subtitle in it: no line like 00:00:01,000 --> 00:00:02,000")
    if not markup.notes:
        _warn_of_text_behind(cues, lines, name)
    runs = list(_runs(cues))
    marked = [Marked(_tokens(run, lines, markup), markup.plain, markup.escape) for run in runs]
    ends = [0, *(run[-1].end for run in runs)]
    before = ["".join(lines[end : run[0].first]) for end, run in zip(ends, runs)]
    after = "".join(lines[ends[-1] :])

    def render(pieces: List[Optional[List[str]]]) -> bytes:
        texts = (between + own.render(new) for between, own, new in zip(before, marked, pieces))
        return ("".join(texts) + after).encode()

    return Parsed([own.unit() for own in marked], render)


def _cues(lines: Sequence[str], name: str) -> Iterator[Cue]:
    number = 0
    while number < len(lines):
        times = TIMES.match(lines[number])
        number += 1
        if times is None:
            if ARROW in lines[number - 1]:
                shown = lines[number - 1].strip()[:60]
                raise InputError.at(name, number, f"{shown!r}: not the times of a subtitle; mend or remove it")
            continue
        first = number
        while number < len(lines) and lines[number].strip() and ARROW not in lines[number]:
            number += 1
        end = number
        if number < len(lines) and lines[number].strip():  # the next cue: no empty line stands before its number
            end -= int(end > first and lines[end - 1].strip().isdecimal())
        yield Cue(first, end, _seconds(times["start"]), _seconds(times["end"]))


def _warn_of_text_behind(cues: Sequence[Cue], lines: Sequence[str], name: str) -> None:
    """Says where text stands behind an empty line, which ends a subtitle."""
    ends = [*(cue.first - 1 for cue in cues[1:]), len(lines)]
    behind = (number for cue, end in zip(cues, ends) for number in range(cue.end, end))
    found = [number + 1 for number in behind if any(map(str.isalpha, lines[number]))]
    if found:
        logger.warning(
            f"{name}:{found[0]}: text behind an empty line in a subtitle stays as it is; remove the empty line "
            f"({len(found):,} lines of such text)"
        )


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.lstrip("-").replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return -seconds if clock.startswith("-") else seconds


def _runs(cues: Sequence[Cue]) -> Iterator[List[Cue]]:
    """The cues between pauses."""
    run: List[Cue] = []
    for cue in cues:
        if run and cue.start_time - run[-1].end_time >= PAUSE:
            yield run
            run = []
        run.append(cue)
    if run:
        yield run


def _tokens(run: Sequence[Cue], lines: Sequence[str], markup: CueMarkup) -> Iterator[Token]:
    """The text of some cues, and what stands between them."""
    between: Tuple[str, int] = ("", run[0].first)  # the line end of the cue before, and the line after it
    for number, cue in enumerate(run):
        if number:
            yield Token(between[0] + "".join(lines[between[1] : cue.first]), Gap.PART)
        end = ""
        for place, line in enumerate(lines[cue.first : cue.end]):
            if place:
                yield Token(end)
                yield Token("", Gap.LINE)
            found = LINE_END.search(line)
            end = found[0] if found else ""
            yield from markup.tokens(line[: len(line) - len(end)])
        between = (end, cue.end)
    yield Token(between[0], Gap.PART)
