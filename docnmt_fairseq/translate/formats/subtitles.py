"""Subtitles with times: cues keep their times and markup; sentences may span several cues of a speaker.

A line that starts with a dash, a name and a colon, a bracket or a note starts a turn of another speaker: no sentence
continues over it.
"""

import html
import re
from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Iterator, List, Sequence, Tuple

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import ANY_LINE, Parsed, Pieces, WholeFile, decode, register
from docnmt_fairseq.translate.formats.inline import Mark, Marked, marks_in
from docnmt_fairseq.translate.formats.markup_projection import Gap

LINE_END = re.compile(r"(?:\r\n|\r|\n)(?:[^\S\r\n]*(?:\r\n|\r|\n))*")  # with the blank lines after it
ARROW = "-->"
CLOCK = r"-?(?:\d+:)?\d+:\d+(?:[.,]\d+)?"
TIMES = re.compile(rf"\s*(?P<start>{CLOCK})\s*{ARROW}\s*(?P<end>{CLOCK})(?=\s|$)", re.ASCII)
PAUSE = 3.0  # seconds without a subtitle that start a paragraph
BREAK = re.compile(r"\\[Nnh]")  # line ends and hard space of SubStation Alpha, also found in SubRip
TAG = re.compile(r"<(?=/?[A-Za-z])")
ENTITY = re.compile(r"&#?\w+;")
BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?=\s|$)")  # of WebVTT

DASH = "-\u2010\u2011\u2013\u2014"
TURN = re.compile(rf"[{DASH}](?![{DASH}\d])|>>|\[|[\u266a\u266b]|[*~]\s|#\s|\([^()]*\)$|<v[\s.>]")
NAME = re.compile(r"(\S[^:\uff1a]{0,40})(?::(?=\s|$)|\uff1a)")
ENDS_TURN = re.compile(r"\[[^][]*\]$|\([^()]*\)$|.*[\u266a\u266b]$")


@dataclass(frozen=True)
class Cue:
    """Subtitle: span of its text in the file, and its times in seconds."""

    first: int
    end: int
    start_time: float
    end_time: float
    is_turn: bool = False  # starts a sentence


class Subtitles(WholeFile):
    """Base class of subtitle formats."""

    objects: ClassVar["re.Pattern[str]"]  # markup in addition to tags
    breaks: ClassVar["re.Pattern[str]"] = BREAK  # markup between words

    def plain(self, raw: str) -> str:
        """Converts raw to readable text."""
        return raw

    def escape(self, text: str) -> str:
        """Converts readable to raw text."""
        return text

    @abstractmethod
    def cues(self, text: str, name: str) -> Iterator[Cue]:
        """Yields the cues of a file; ``name`` is its name in messages."""

    def parse(self, content: bytes, name: str) -> Parsed:
        text = decode(content, name)
        runs = list(_runs([turn for cue in self.cues(text, name) for turn in self._turns(text, cue)]))
        marked = [self._marked(text, run) for _, run in runs]
        ends = [0, *(run[-1].end for _, run in runs)]
        before = [text[end : run[0].first] for end, (_, run) in zip(ends, runs)]

        def render(pieces: List[Pieces]) -> bytes:
            texts = (between + own.render(new) for between, own, new in zip(before, marked, pieces))
            return ("".join(texts) + text[ends[-1] :]).encode()

        segments = [own.segment(new_paragraph) for own, (new_paragraph, _) in zip(marked, runs)]
        return Parsed(segments, render)

    def _turns(self, text: str, cue: Cue) -> Iterator[Cue]:
        """Yields the parts of a cue that start a sentence."""
        ends = [*LINE_END.finditer(text, cue.first, cue.end), *self.breaks.finditer(text, cue.first, cue.end)]
        starts = [cue.first, *sorted(found.end() for found in ends)]
        first, previous, is_turn = cue.first, "", cue.is_turn
        for start, following in pairwise([*starts, cue.end]):
            line = self.breaks.sub("", text[start:following]).strip()
            shown = self._readable(line)
            if line.startswith("<v") or _starts_turn(shown, previous):
                if start > first:
                    yield replace(cue, first=first, end=start, is_turn=is_turn)
                first, is_turn = start, True
            previous = shown or previous
        yield replace(cue, first=first, is_turn=is_turn)

    def _readable(self, raw: str) -> str:
        """Returns a line without markup."""
        found, behind = "", 0
        for start, end, _ in sorted(marks_in(raw, self.objects)):
            found, behind = found + raw[behind : max(start, behind)], max(end, behind)
        return self.plain(found + raw[behind:]).strip()

    def _marked(self, text: str, run: Sequence[Cue]) -> Marked:
        """Returns the text of consecutive cues; what is in between is markup."""
        origin, marks = run[0].first, [(cue.end, after.first, Gap.PART) for cue, after in pairwise(run)]
        for cue in run:
            raw = text[cue.first : cue.end]
            own: List[Mark] = [(found.end(), found.end(), Gap.LINE) for found in LINE_END.finditer(raw)]
            own += [(*found.span(), Gap.PART) for found in self.breaks.finditer(raw)]
            for start, end, gap in own + marks_in(raw, self.objects):
                in_word = (
                    raw[start : start + 1] == "{" and (raw[start - 1 : start] + raw[end : end + 1]).isalnum()
                )  # of karaoke
                marks.append((cue.first + start, cue.first + end, Gap.OPEN if in_word else gap))
        shifted = [(start - origin, end - origin, gap) for start, end, gap in marks]
        return Marked(text[origin : run[-1].end], shifted, self.plain, self.escape)


def _starts_turn(line: str, previous: str) -> bool:
    """Returns whether a line starts a turn; ``previous`` is the line before it in the cue."""
    if not line:
        return False
    if TURN.match(line) or ENDS_TURN.match(previous):
        return True
    name = NAME.match(line)  # JOHN: or Old man 2:
    return name is not None and name[1][0].isalpha() and not any(word[0].islower() for word in name[1].split())


def _runs(cues: Sequence[Cue]) -> Iterator[Tuple[bool, List[Cue]]]:
    """Yields consecutive cues without pauses and turns, and whether they start a paragraph."""
    run: List[Cue] = []
    new_paragraph = True
    for cue in cues:
        pause = bool(run) and cue.start_time - run[-1].end_time >= PAUSE
        if run and (pause or cue.is_turn):
            yield new_paragraph, run
            run, new_paragraph = [], pause
        run.append(cue)
    if run:
        yield new_paragraph, run


def seconds(clock: str) -> float:
    """Returns the seconds of a time such as ``01:02:03,5``."""
    total = 0.0
    for part in clock.lstrip("-").replace(",", ".").split(":"):
        total = 60 * total + float(part)
    return -total if clock.startswith("-") else total


class TimedLines(Subtitles):
    """Base class of formats with times in lines ``START --> END``; a cue ends where the next one starts."""

    def cues(self, text: str, name: str) -> Iterator[Cue]:
        lines = ANY_LINE.findall(text)
        heads = [number for number, line in enumerate(lines) if ARROW in line]
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line))
        for head, following in pairwise([*heads, len(lines)]):
            times = TIMES.match(lines[head])
            if times is None:
                shown = lines[head].strip()[:60]
                raise InputError.at(
                    name, head + 1, f"{shown!r}: not the times of a subtitle; correct or remove the line"
                )
            first, end = head + 1, following
            if following < len(lines) and end > first and self.is_identifier(lines, end - 1):
                end -= 1
            end = next((number for number in range(first, end) if self.ends_cue(lines, number)), end)
            while first < end and not lines[first].strip():
                first += 1
            while first < end and not lines[end - 1].strip():
                end -= 1
            last = starts[end] - (len(lines[end - 1]) - len(lines[end - 1].rstrip("\r\n")) if first < end else 0)
            yield Cue(starts[first], last, seconds(times["start"]), seconds(times["end"]))

    @abstractmethod
    def is_identifier(self, lines: Sequence[str], number: int) -> bool:
        """Returns whether a line before times is the identifier of their cue."""

    def ends_cue(self, lines: Sequence[str], number: int) -> bool:
        """Returns whether a line starts something else than text."""
        return False


@register("srt")
class SubRip(TimedLines):
    """SubRip: numbered subtitles. Text after an empty line is part of its subtitle."""

    help = "SubRip subtitles; sentences may span several, which keep their times"
    endings = (".srt",)
    objects = re.compile(r"\{\\[^{}]*\}|\{[A-Za-z]:[^{}]*\}")  # {\an8}, {y:i} and the like

    def plain(self, raw: str) -> str:
        return ENTITY.sub(lambda entity: html.unescape(entity[0]), raw)

    def escape(self, text: str) -> str:
        return TAG.sub("&lt;", text.replace(ARROW, "->"))  # an arrow would be read as times

    def is_identifier(self, lines: Sequence[str], number: int) -> bool:
        return lines[number].strip().isdecimal()


@register("vtt")
class WebVTT(TimedLines):
    """WebVTT: subtitles with settings, notes and styles."""

    help = "WebVTT subtitles; like srt, with settings, notes and styles"
    endings = (".vtt",)
    objects = re.compile(rf"<{CLOCK}>", re.ASCII)  # time of a part of a subtitle

    def plain(self, raw: str) -> str:
        return html.unescape(raw)

    def escape(self, text: str) -> str:
        return html.escape(text, quote=False)

    def is_identifier(self, lines: Sequence[str], number: int) -> bool:
        return bool(lines[number].strip()) and not lines[number - 1].strip("\r\n")

    def ends_cue(self, lines: Sequence[str], number: int) -> bool:
        return BLOCK.match(lines[number]) is not None and not lines[number - 1].strip("\r\n")


# --- SubStation Alpha ---

SECTION = re.compile(r"\[([^\]]*)\]\s*$")


@register("ass")
class SubStationAlpha(Subtitles):
    """Text of the dialogue; sentences may span consecutive lines of a speaker in the same style."""

    help = "SubStation Alpha subtitles: text of the dialogue; styles, comments, override codes and drawings stay"
    endings = (".ass", ".ssa")
    objects = re.compile(r"\{[^{}]*\\p[1-9][^{}]*\}.*?(?=\{[^{}]*\\p0|$)|\{[^{}]*\}", re.DOTALL)  # drawings, codes

    def escape(self, text: str) -> str:
        return text.replace("{", "(").replace("}", ")")  # braces would be codes

    def cues(self, text: str, name: str) -> Iterator[Cue]:
        section, names = "", [""]
        before = None
        place = 0
        for line in ANY_LINE.findall(text):
            head, _, values = line.partition(":")
            if found := SECTION.match(line):
                section = found[1].lower()
            elif section == "events" and head == "Format":
                names = [field.strip().lower() for field in values.split(",")]
            elif section == "events" and head == "Dialogue":
                fields = dict(zip(names, values.split(",", len(names) - 1)))
                speaker = fields.get("style"), fields.get("name"), fields.get("actor")
                own = fields["text"].rstrip("\r\n")
                first = place + len(line) - len(fields["text"])
                start, end = (seconds(fields[key].strip()) for key in ("start", "end"))
                yield Cue(first, first + len(own), start, end, is_turn=before not in (None, speaker))
                before = speaker
            place += len(line)
