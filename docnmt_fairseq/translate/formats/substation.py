"""SubStation Alpha subtitles (.ass, .ssa)."""

import re
from typing import Dict, Iterator, List

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import register
from docnmt_fairseq.translate.formats.subtitles import LINE, Cue, Subtitles, seconds

SECTION = re.compile(r"\[([^\]]*)\]\s*$")
CLOCK = re.compile(r"\s*\d+:\d+:\d+(?:[.,]\d+)?\s*$", re.ASCII)
NEEDED = ("start", "end", "text")


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
        for number, line in enumerate(LINE.findall(text), start=1):
            head, _, values = line.partition(":")
            if found := SECTION.match(line):
                section = found[1].lower()
            elif section == "events" and head == "Format":
                names = [field.strip().lower() for field in values.split(",")]
                if names[-1] != "text" or not set(NEEDED) <= set(names):
                    raise InputError.at(name, number, "events need the fields Start, End and, as the last one, Text")
            elif section == "events" and head == "Dialogue":
                fields = self._fields(values, names, name, number)
                speaker = fields.get("style"), fields.get("name"), fields.get("actor")
                own = fields["text"].rstrip("\r\n")
                first = place + len(line) - len(fields["text"])
                start, end = (seconds(fields[key].strip()) for key in ("start", "end"))
                yield Cue(first, first + len(own), start, end, is_turn=before not in (None, speaker))
                before = speaker
            place += len(line)
        if text.strip() and names == [""]:
            raise InputError(f"{name}: contains no [Events] with a line Format:")

    def _fields(self, values: str, names: List[str], name: str, number: int) -> Dict[str, str]:
        """Returns the fields of a line of dialogue by name."""
        found = dict(zip(names, values.split(",", len(names) - 1)))
        if len(found) < max(len(names), 2) or not all(CLOCK.match(found[key]) for key in ("start", "end")):
            raise InputError.at(
                name, number, "not the fields that the line Format: of [Events] names; correct the line"
            )
        return found
