"""WebVTT subtitles (.vtt)."""

import html
import re
from typing import Iterator

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import Parsed, WholeFile, decode, register
from docnmt_fairseq.translate.formats.cues import CLOCK, CueMarkup, parse_cues
from docnmt_fairseq.translate.formats.inline import Token, tags_of, tokens_between
from docnmt_fairseq.translate.formats.units import Gap

TIME = re.compile(rf"<{CLOCK}>", re.ASCII)  # when a part of a subtitle appears


def _tokens(line: str) -> Iterator[Token]:
    marks = [(tag.start, tag.end, tag.gap) for tag in tags_of(line)]
    marks += [(*found.span(), Gap.OBJECT) for found in TIME.finditer(line)]
    return tokens_between(line, marks)


MARKUP = CueMarkup(_tokens, plain=html.unescape, escape=lambda text: html.escape(text, quote=False), notes=True)


@register("vtt")
class WebVTT(WholeFile):
    """Subtitles with settings, notes and styles, which stay."""

    help = "WebVTT subtitles; as srt, and settings, notes and styles stay"
    endings = (".vtt",)

    def parse(self, content: bytes, name: str) -> Parsed:
        """See :class:`WholeFile`."""
        text = decode(content, name)
        if text and not text.startswith("WEBVTT"):
            raise InputError.at(name, 1, "WebVTT begins with WEBVTT; is it of this format?")
        return parse_cues(text, name, MARKUP)
