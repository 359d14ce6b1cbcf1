"""SubRip (.srt) and WebVTT (.vtt) subtitles: cues keep their times and markup; sentences may span several cues."""

import html
import logging
import re
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Iterator, List, Sequence

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Mark, Marked, marks_in
from docnmt_fairseq.translate.formats.markup_projection import Gap

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
ARROW = "-->"
CLOCK = r"-?(?:\d+:)?\d+:\d+(?:[.,]\d+)?"
TIMES = re.compile(rf"\s*(?P<start>{CLOCK})\s*{ARROW}\s*(?P<end>{CLOCK})(?=\s|$)", re.ASCII)
PAUSE = 3.0  # seconds without a subtitle that start a paragraph

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cue:
    """Subtitle: range of its text lines in the file, and its times in seconds."""

    first: int
    end: int
    start_time: float
    end_time: float


class Subtitles(WholeFile):
    """Base class of formats with times in lines ``START --> END``."""

    objects: ClassVar["re.Pattern[str]"]  # markup in addition to tags

    def plain(self, raw: str) -> str:
        """Converts raw to readable text."""
        return raw

    def escape(self, text: str) -> str:
        """Converts readable to raw text."""
        return text

    def parse(self, content: bytes, name: str) -> Parsed:
        lines = LINE.findall(decode(content, name))
        cues = list(_cues(lines, name))
        self.check(lines, cues, name)
        runs = list(_runs(cues))
        marked = [self._marked(run, lines) for run in runs]
        ends = [0, *(run[-1].end for run in runs)]
        before = ["".join(lines[end : run[0].first]) for end, run in zip(ends, runs)]
        after = "".join(lines[ends[-1] :])

        def render(pieces: List[Pieces]) -> bytes:
            texts = (between + own.render(new) for between, own, new in zip(before, marked, pieces))
            return ("".join(texts) + after).encode()

        return Parsed([own.segment() for own in marked], render)

    @abstractmethod
    def check(self, lines: Sequence[str], cues: Sequence[Cue], name: str) -> None:
        """Checks the lines outside of cues.

        Raises:
            InputError: the file is not of this format.
        """

    def _marked(self, run: Sequence[Cue], lines: Sequence[str]) -> Marked:
        """Returns the text of consecutive cues; the lines in between are markup."""
        marks: List[Mark] = []
        place = 0  # in the text
        for cue, following in zip(run, [*(cue.first for cue in run[1:]), run[-1].end]):
            end = 0  # length of the last line end
            for number, line in enumerate(lines[cue.first : cue.end]):
                if number:
                    marks.append((place, place, Gap.LINE))
                text = line.rstrip("\r\n")
                marks += [(place + start, place + stop, gap) for start, stop, gap in marks_in(text, self.objects)]
                place, end = place + len(line), len(line) - len(text)
            start = place - end
            place += sum(map(len, lines[cue.end : following]))
            marks.append((start, place, Gap.PART))
        return Marked("".join(lines[run[0].first : run[-1].end]), marks, self.plain, self.escape)


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


@register("srt")
class SubRip(Subtitles):
    """SubRip: numbered subtitles."""

    help = "SubRip subtitles; sentences may span several, which keep their times"
    endings = (".srt",)
    objects = re.compile(r"\{\\[^{}]*\}")  # {\an8} and the like

    def escape(self, text: str) -> str:
        return text.replace(ARROW, "->")  # an arrow would be read as times

    def check(self, lines: Sequence[str], cues: Sequence[Cue], name: str) -> None:
        """Warns of text after an empty line, which ends a subtitle."""
        if not cues and any(line.strip() for line in lines):
            raise InputError(f"{name}: contains no subtitle, such as a line 00:00:01,000 --> 00:00:02,000")
        ends = [*(cue.first - 1 for cue in cues[1:]), len(lines)]
        behind = (number for cue, end in zip(cues, ends) for number in range(cue.end, end))
        found = [number + 1 for number in behind if any(map(str.isalpha, lines[number]))]
        if found:
            logger.warning(
                f"{name}:{found[0]}: text after an empty line in a subtitle is not translated; remove the empty line "
                f"({len(found):,} lines of such text)"
            )


@register("vtt")
class WebVTT(Subtitles):
    """WebVTT: subtitles with settings, notes and styles."""

    help = "WebVTT subtitles; like srt, with settings, notes and styles"
    endings = (".vtt",)
    objects = re.compile(rf"<{CLOCK}>", re.ASCII)  # time of a part of a subtitle

    def plain(self, raw: str) -> str:
        return html.unescape(raw)

    def escape(self, text: str) -> str:
        return html.escape(text, quote=False)

    def check(self, lines: Sequence[str], cues: Sequence[Cue], name: str) -> None:
        if lines and not lines[0].startswith("WEBVTT"):
            raise InputError.at(name, 1, "a WebVTT file starts with WEBVTT")
