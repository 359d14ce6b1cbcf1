"""SubRip subtitles (.srt)."""

import re
from typing import Iterator

from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.cues import ARROW, CueMarkup, parse_cues
from docnmt_fairseq.translate.formats.inline import Token, tags_of, tokens_between
from docnmt_fairseq.translate.formats.units import Gap

BRACES = re.compile(r"\{\\[^{}]*\}")  # {\an8} and the like


def _tokens(line: str) -> Iterator[Token]:
    marks = [(tag.start, tag.end, tag.gap) for tag in tags_of(line)]
    marks += [(*found.span(), Gap.OBJECT) for found in BRACES.finditer(line)]
    return tokens_between(line, marks)


MARKUP = CueMarkup(_tokens, escape=lambda text: text.replace(ARROW, "->"))  # an arrow would read as times


@register("srt")
class SubRip(WholeFile):
    """Numbered subtitles with their times."""

    help = "SubRip subtitles; sentences go through several, which keep their times"
    endings = (".srt",)

    def parse(self, content: bytes, name: str) -> Parsed:
        """See :class:`WholeFile`."""
        return parse_cues(decode(content, name), name, MARKUP)
