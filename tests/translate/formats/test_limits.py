"""Limits on the content of files."""

import pytest

from docnmt_fairseq.translate.formats.base import FormatLimits, TooLarge
from tests.support.malformed import XLIFF, document
from tests.support.texts import WAYS, through

MANY = {
    "docx": (document("<w:p/>" * 1000), "1,000 tags"),
    "xliff": (XLIFF.format("<g/>" * 500), "500 tags"),
    "html": ("<b>" * 301, "300 tags"),
    "markdown": ("\n" * 41 + "[", "40 lines"),
    "running": ("\n" * 41, "40 lines"),
    "po": (
        'msgid ""\nmsgstr ""\n"X: y\\n"\n' + "".join(f'\nmsgid "{n}"\nmsgstr ""\n' for n in range(41)),
        "40 messages",
    ),
}


@pytest.mark.parametrize("name", MANY)
def test_limits_per_sentence(name):
    content, told = MANY[name]
    through(name, content)
    with pytest.raises(TooLarge, match=f"x.{name}: more than {told}; divide it"):
        through(name, content, limits=FormatLimits(sentences=10))


def test_limit_of_markup_in_a_line():
    with pytest.raises(TooLarge, match="200 marks of markup"):
        through("markdown", "![" * 201, limits=FormatLimits(sentences=10))


@pytest.mark.parametrize("name", ["html", "markdown", "running", "srt"])
def test_limit_of_sentences(name):
    times = "00:00:01,000 --> 00:00:02,000\n" if name == "srt" else ""
    content = times + "One is here. " * 10 + "\n"
    assert through(name, content, WAYS["same"], limits=FormatLimits(sentences=10))[0] == content.encode()
    with pytest.raises(TooLarge, match=f"x.{name}: more than 9 sentences; divide it"):
        through(name, content, limits=FormatLimits(sentences=9))


def test_linear_time():
    """Quadratic time would take minutes."""
    text = "a" + " " * 300_000 + "b\nc\n"
    assert through("markdown", text, WAYS["same"])[0] == text.encode()
    segments = XLIFF.format("</source></trans-unit>\n<trans-unit><source>".join("1" * 30_000))
    through("xliff", segments, WAYS["same"])
