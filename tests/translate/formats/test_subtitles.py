"""Subtitles: all text is translated; times and markup stay."""

import re

import pysubs2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.texts import WAYS, through

SRT = """\ufeff1
00:00:01,000 --> 00:00:02,000
<i>Hello there,
the big</i>

2
00:00:02,100 --> 00:00:03,000  X1:100 X2:200
world. How are

3
00:00:03,100 --> 00:00:04,000
{\\an8}you today?
- Fine, thanks!

4
00:00:05,000 --> 00:00:06,000

5
00:00:13,100 --> 00:00:14,000
Bye <b>now</b>. 100 %
"""
VTT = """WEBVTT - a title

STYLE
::cue { color: white }

NOTE this stays as it is

intro
00:01.000 --> 00:02.000 align:start position:10%
<v Mary Ann>It is <c.big>me</c> &amp; <00:01.500>you,
are we?

01:00:02.100 --> 01:00:03.000
<b>No.</b>
"""
TIMES = re.compile(r"^.*-->.*$", re.MULTILINE)


@pytest.mark.parametrize(("name", "text"), [("srt", SRT), ("vtt", VTT), ("srt", SRT.replace("\n", "\r\n"))])
def test_unchanged_text_gives_the_same_bytes(name, text):
    assert through(name, text, WAYS["same"])[0] == text.encode()


def test_sentences_span_cues():
    lines = ["Hello there, the big world.", "How are you today?", "- Fine, thanks!", "<p>", "Bye now."]
    assert through("srt", SRT)[1] == [lines]
    assert through("vtt", VTT)[1] == [["It is me & you, are we?", "<p>", "No."]]


@pytest.mark.parametrize(("second", "marks"), [("04,999", []), ("05,000", ["<p>"])])
def test_pause_starts_a_paragraph(second, marks):
    cues = f"1\n00:00:01,000 --> 00:00:02,000\nHere.\n\n2\n00:00:{second} --> 00:00:06,000\nThere.\n"
    assert through("srt", cues)[1] == [["Here.", *marks, "There."]]


def test_translation_is_divided_over_its_cues():
    wanted = SRT.replace("Hello there,\nthe big", "HELLO THERE,\nTHE BIG").replace("world. How are", "WORLD. HOW ARE")
    wanted = wanted.replace("you today?\n- Fine, thanks!", "YOU TODAY?\n- FINE, THANKS!")
    assert through("srt", SRT)[0].decode() == wanted.replace("Bye <b>now</b>", "BYE <b>NOW</b>")
    wanted = VTT.replace("It is", "IT IS").replace("me</c> &amp;", "ME</c> &amp;")
    assert through("vtt", VTT)[0].decode() == wanted.replace("you,\nare we?", "YOU,\nARE WE?").replace("No.", "NO.")


WORDS = st.sampled_from(["I", "go", "there.", "<i>now</i>", "you", "-", "Why?", "42", "{\\an8}so", "<b>Dr.", "X</b>"])
CUES = st.lists(
    st.tuples(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=3), st.integers(0, 9), st.integers(-2, 5)),
    min_size=1,
    max_size=8,
)


def made(cues):
    """Returns a file with cues of these words, lines, durations and pauses."""
    text, time = "", 10
    for number, (lines, duration, pause) in enumerate(cues, start=1):
        start, time = time + pause, time + pause + duration
        body = "".join(" ".join(line) + "\n" for line in lines)
        text += f"{number}\n00:{start // 60:02}:{start % 60:02},000 --> 00:{time // 60:02}:{time % 60:02},500\n{body}\n"
    return text


@settings(deadline=None, max_examples=50)
@given(CUES, st.sampled_from(sorted(set(WAYS) - {"marks"})))
def test_random_cues(cues, way):
    text = made(cues)
    found, (lines,) = through("srt", text, WAYS[way])
    found = found.decode()
    assert TIMES.findall(found) == TIMES.findall(text)
    if way == "same":
        assert found == text
    # Each word of a translation is there once; numbers and signs without letters stay.
    plain = re.sub(r"<[^<>]*>|\{\\[^{}]*\}", "", "\n".join(TIMES.sub("", found).splitlines()))
    given_words = sorted(re.findall(r"[A-Za-z]+", " ".join(WAYS[way](line) for line in lines if line != "<p>")))
    assert sorted(re.findall(r"[A-Za-z]+", plain)) == given_words
    # Nothing but the end of a cue is an empty line: no reader would take what follows for text.
    events = pysubs2.SSAFile.from_string(found, format_="srt", keep_html_tags=True)
    assert len(events) == len(cues)


def test_text_after_an_empty_line_is_reported(caplog):
    times = "00:00:01,000 --> 00:00:02,000\n"
    text = f"1\n{times}One\n\nlost\n\n2\n{times}Two\n\n\n3\n{times}\nlost, too\n\n42\n"
    found, (lines,) = through("srt", text)
    assert lines == ["One Two"] and b"lost\n" in found
    (message,) = caplog.messages
    assert message.startswith("x.srt:5: ") and "2 lines" in message
    for name, whole in (("srt", SRT), ("vtt", VTT)):
        through(name, whole)
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("text", ["", "WEBVTT\n", "WEBVTT"])
def test_no_cues(text):
    assert through("vtt", text)[0] == text.encode()


def test_cues_without_empty_lines_and_with_odd_times():
    text = "1\n-00:00:01,000 --> 00:00:00,500\nOne\n2\n00:00:09,000 --> 00:00:02,000\nTwo.\n"
    found, (lines,) = through("srt", text)
    assert lines == ["One", "<p>", "Two."] and found.decode() == text.replace("One", "ONE").replace("Two", "TWO")
