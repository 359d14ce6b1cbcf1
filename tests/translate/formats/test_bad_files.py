"""Files that are not of their format, or exceed limits, are refused with their name and line."""

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.formats.base import FormatLimits, TooLarge
from tests.support.malformed import XLIFF, document, docx
from tests.support.texts import WAYS, through

CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
ENTITY = '<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>'
HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}\\n"\n'


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("srt", "1\nsoon --> later\nx\n", ":2"),
        ("srt", f"{CUE}\xe9\n".encode("latin-1"), ":3"),
        ("ass", "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,later,x\n", ""),
        ("ass", "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00\n", ""),
        ("html", b"<p>\n\xfc</p>", ":2"),
        ("html", "<meta charset=x-none>", ""),
        ("po", 'msgid "a\n', ""),
        ("po", "msgstr[x] 3\n", ""),
        ("po", 'msgid "a"\nmsgid "b"\n\x00', ""),
        ("po", HEADER.format("NONE-1"), ""),
        ("po", (HEADER.format("UTF-8") + '\nmsgid "\xfc"\nmsgstr ""\n').encode("latin-1"), ":4"),
        ("xliff", "", ""),
        ("xliff", ENTITY, ""),
        ("xliff", f'<?xml version="1.0" encoding="UTF-16"?>{ENTITY}'.encode("utf-16"), ""),
        ("xliff", "<xliff>&unknown;</xliff>", ""),
        ("xliff", f"<xliff>{'<g>' * 300}{'</g>' * 300}</xliff>", ""),
        ("docx", b"no archive", ""),
        ("docx", document("<w:p/>")[:-30], ""),
        ("docx", document("<w:p/>" * 999).replace((6090).to_bytes(4, "little"), (5).to_bytes(4, "little")), ""),
        ("docx", docx(("x.txt", "x")), ""),
        ("docx", docx(("word/document.xml", "<a><b></a>")), ""),
        ("docx", docx(("word/document.xml", ENTITY)), ": word/document.xml"),
        ("docx", docx(("x", bytes(2 << 20))), ""),
        ("epub", docx(("mimetype", "application/epub+zip")), ""),
        ("json", "{", ""),
        ("json", "[" * 100_000, ""),
    ],
)
def test_bad_files(name, content, place):
    with pytest.raises(InputError, match=f"^x\\.{name}{place}: "):
        through(name, content, limits=FormatLimits(unpacked=1 << 20))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("docx", document("<w:p/>" * 1000)),
        ("xliff", XLIFF.format("<g/>" * 500)),
        ("html", "<b>" * 301),
        ("html", "<p>One is here. " * 11),
        ("markdown", "\n" * 41 + "["),
        ("markdown", "![" * 201),
        ("running", "\n" * 41),
        ("running", "One is here. " * 11),
        ("srt", CUE + "One is here. " * 11),
        ("po", HEADER.format("UTF-8") + "".join(f'\nmsgid "{n}"\nmsgstr ""\n' for n in range(41))),
    ],
)
def test_limits(name, content):
    through(name, content)
    with pytest.raises(TooLarge):
        through(name, content, limits=FormatLimits(sentences=10))


@pytest.mark.parametrize(("name", "content"), [("srt", "hello\n"), ("po", "# nothing\n"), ("xliff", "<a>b</a>")])
def test_files_without_text_stay_with_a_warning(name, content, caplog):
    assert through(name, content) == (content.encode(), [[]])
    assert "contains no text" in caplog.text


def test_linear_time():
    """Quadratic time would take minutes."""
    text = "a" + " " * 300_000 + "b\nc\n"
    assert through("markdown", text, WAYS["same"])[0] == text.encode()
    through("xliff", XLIFF.format("</source></trans-unit>\n<trans-unit><source>".join("1" * 30_000)), WAYS["same"])
