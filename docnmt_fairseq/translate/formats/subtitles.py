"""SubRip (.srt) and WebVTT (.vtt) subtitles: cues keep their times and markup; sentences may span several cues."""

import html
import logging
import re
from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Marked, Token, same, tags_of, tokens_between
from docnmt_fairseq.translate.formats.markup_projection import Gap

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
LINE_END = re.compile(r"(?:\r\n|\r|\n)\Z")
ARROW = "-->"
CLOCK = r"-?(?:\d+:)?\d+:\d+(?:[.,]\d+)?"
TIMES = re.compile(rf"\s*(?P<start>{CLOCK})\s*{ARROW}\s*(?P<end>{CLOCK})(?=\s|$)", re.ASCII)
PAUSE = 3.0  # seconds without a subtitle that start a paragraph

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CueMarkup:
    """Markup of a format.

    Attributes:
        tokens: returns the tokens of a line.
        plain, escape: conversion of raw to readable text and back.
        notes: text outside of cues is allowed.
    """

    tokens: Callable[[str], Iterator[Token]]
    plain: Callable[[str], str] = same
    escape: Callable[[str], str] = same
    notes: bool = False


@dataclass(frozen=True)
class Cue:
    """Subtitle: range of its text lines in the file, and its times in seconds."""

    first: int
    end: int
    start_time: float
    end_time: float


def parse_cues(text: str, name: str, markup: CueMarkup) -> Parsed:
    """Parses the subtitles of a file.

    Args:
        text: content of the file.
        name: name in messages.
        markup: markup of the format.

    Raises:
        InputError: it contains no subtitles, or one without times.
    """
    lines = LINE.findall(text)
    cues = list(_cues(lines, name))
    if not cues and text.strip() and not text.startswith("WEBVTT"):
        raise InputError(f"{name}: contains no subtitle, such as a line 00:00:01,000 --> 00:00:02,000")
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

    return Parsed([own.segment() for own in marked], render)


def _cues(lines: Sequence[str], name: str) -> Iterator[Cue]:
    number = 0
    while number < len(lines):
        times = TIMES.match(lines[number])
        number += 1
        if times is None:
            if ARROW in lines[number - 1]:
                shown = lines[number - 1].strip()[:60]
                raise InputError.at(name, number, f"{shown!r}: not the times of a subtitle; correct or remove the line")
            continue
        first = number
        while number < len(lines) and lines[number].strip() and ARROW not in lines[number]:
            number += 1
        end = number
        if number < len(lines) and lines[number].strip():  # the next cue follows without an empty line
            end -= int(end > first and lines[end - 1].strip().isdecimal())
        yield Cue(first, end, _seconds(times["start"]), _seconds(times["end"]))


def _warn_of_text_behind(cues: Sequence[Cue], lines: Sequence[str], name: str) -> None:
    """Warns of text after an empty line, which ends a subtitle."""
    ends = [*(cue.first - 1 for cue in cues[1:]), len(lines)]
    behind = (number for cue, end in zip(cues, ends) for number in range(cue.end, end))
    found = [number + 1 for number in behind if any(map(str.isalpha, lines[number]))]
    if found:
        logger.warning(
            f"{name}:{found[0]}: text after an empty line in a subtitle is not translated; remove the empty line "
            f"({len(found):,} lines of such text)"
        )


def _seconds(clock: str) -> float:
    seconds = 0.0
    for part in clock.lstrip("-").replace(",", ".").split(":"):
        seconds = 60 * seconds + float(part)
    return -seconds if clock.startswith("-") else seconds


def _runs(cues: Sequence[Cue]) -> Iterator[List[Cue]]:
    """Yields consecutive cues between pauses."""
    run: List[Cue] = []
    for cue in cues:
        if run and cue.start_time - run[-1].end_time >= PAUSE:
            yield run
            run = []
        run.append(cue)
    if run:
        yield run


def _tokens(run: Sequence[Cue], lines: Sequence[str], markup: CueMarkup) -> Iterator[Token]:
    """Yields the text of cues, and what is between them."""
    between: Tuple[str, int] = ("", run[0].first)  # line end of the previous cue, and the line after it
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


BRACES = re.compile(r"\{\\[^{}]*\}")  # {\an8} and the like


def _srt_tokens(line: str) -> Iterator[Token]:
    marks = [(tag.start, tag.end, tag.gap) for tag in tags_of(line)]
    marks += [(*found.span(), Gap.OBJECT) for found in BRACES.finditer(line)]
    return tokens_between(line, marks)


SRT = CueMarkup(_srt_tokens, escape=lambda text: text.replace(ARROW, "->"))  # an arrow would be read as times


@register("srt")
class SubRip(WholeFile):
    """SubRip: numbered subtitles."""

    help = "SubRip subtitles; sentences may span several, which keep their times"
    endings = (".srt",)

    def parse(self, content: bytes, name: str) -> Parsed:
        """Parses a file."""
        return parse_cues(decode(content, name), name, SRT)


TIME = re.compile(rf"<{CLOCK}>", re.ASCII)  # of a part of a subtitle


def _vtt_tokens(line: str) -> Iterator[Token]:
    marks = [(tag.start, tag.end, tag.gap) for tag in tags_of(line)]
    marks += [(*found.span(), Gap.OBJECT) for found in TIME.finditer(line)]
    return tokens_between(line, marks)


VTT = CueMarkup(_vtt_tokens, plain=html.unescape, escape=lambda text: html.escape(text, quote=False), notes=True)


@register("vtt")
class WebVTT(WholeFile):
    """WebVTT: subtitles with settings, notes and styles."""

    help = "WebVTT subtitles; like srt, with settings, notes and styles"
    endings = (".vtt",)

    def parse(self, content: bytes, name: str) -> Parsed:
        """Parses a file."""
        text = decode(content, name)
        if text and not text.startswith("WEBVTT"):
            raise InputError.at(name, 1, "a WebVTT file starts with WEBVTT")
        return parse_cues(text, name, VTT)
