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


def test_cue_does_not_start_with_the_space_after_a_moved_sentence():
    cues = "1\n00:00:01,000 --> 00:00:02,000\nIt has not\n\n2\n00:00:02,100 --> 00:00:03,000\nended. Go <i>on</i>.\n"
    translations = {"It has not ended.": "No.", "Go on.": "Weiter."}
    found = through("srt", cues, translations.get)[0].decode()
    assert [line for line in found.splitlines() if re.search("[a-z]", line)] == ["No.", "<i>Weiter</i>."]


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


def test_text_after_an_empty_line_belongs_to_its_cue(caplog):
    times = "00:00:01,000 --> 00:00:02,000\n"
    text = f"1\n{times}\nOne.\n \nis here\n\n2\n{times}\n\nTwo.\n\n\n3\n{times}\n"
    found, (lines,) = through("srt", text)
    assert lines == ["One.", "is here Two."] and not caplog.messages
    wanted = text.replace("One", "ONE").replace("is here", "IS HERE").replace("Two", "TWO")
    assert found.decode() == wanted
    times = times.replace(",", ".")
    text = f"WEBVTT\n\n{times} \nOne.\n\nNOTE a note\n\nan id\n{times}\nTwo.\n"
    assert through("vtt", text)[0].decode() == text.replace("One", "ONE").replace("Two", "TWO")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- Where is it\n- In here", ["- Where is it", "- In here"]),
        ("\u2013 Where is it\n<i>\u2014In here</i>", ["\u2013 Where is it", "\u2014In here"]),
        ("OLD MAN 2: Open it\nMary: Not now", ["OLD MAN 2: Open it", "Mary: Not now"]),
        (">> Open it\n>> Not now", [">> Open it", ">> Not now"]),
        ("[DOOR OPENS]\nwho is it", ["[DOOR OPENS]", "who is it"]),
        ("(sighs)\nwho is it", ["(sighs)", "who is it"]),
        ("\u266a I love you \u266a\nwho is it", ["\u266a I love you \u266a", "who is it"]),
        ("- Where is\\N- In here", ["- Where is", "- In here"]),
        ("it is there\n-5 at night", ["it is there -5 at night"]),
        ("there is one thing\nyou know: me", ["there is one thing you know: me"]),
    ],
)
def test_turns_of_speakers_end_sentences(text, lines):
    file = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"
    assert through("srt", file)[1] == [lines]
    assert through("srt", file, WAYS["same"])[0].decode() == file


def test_voices_of_webvtt_are_turns():
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Mary>Where is it\n<v.loud John>In here\n"
    assert through("vtt", text)[1] == [["Where is it", "In here"]]


def test_codes_of_subrip():
    text = "1\n00:00:01,000 --> 00:00:02,000\n{y:i}The big\\Nhouse&nbsp;of Q&amp;A\\hand R&D.\n"
    found, (lines,) = through("srt", text)
    assert lines == ["The big house of Q&A and R&D."]
    assert found.decode().splitlines()[2] == "{y:i}THE BIG\\NHOUSE OF Q&A\\hAND R&D."


ASS = """\ufeff[Script Info]
Title: This stays

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,Not shown
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\\an8\\i1}The big, old\\Nhouse
Dialogue: 0,0:00:02.60,0:00:04.00,Default,,0,0,0,,is{\\i0} here.
Dialogue: 0,0:00:02.60,0:00:04.00,Sign,,0,0,0,,{\\p1}m 0 0 l 9 9{\\p0}Exit
Dialogue: 0,0:00:09.00,0:00:10.00,Default,Mary,0,0,0,,- Where\\N- There

[Fonts]
"""


@pytest.mark.parametrize("way", sorted(WAYS))
def test_substation_alpha(way):
    for text in (ASS, ASS.replace("\n", "\r\n")):
        found, (lines,) = through("ass", text, WAYS[way])
        assert lines == ["The big, old house is here.", "Exit", "<p>", "- Where", "- There"]
        found = found.decode()
        kept = [re.sub(r"^(Dialogue:(?:[^,]*,){9}).*", r"\1", line) for line in found.splitlines()]
        assert kept == [re.sub(r"^(Dialogue:(?:[^,]*,){9}).*", r"\1", line) for line in text.splitlines()]
        assert len(pysubs2.SSAFile.from_string(found[1:], format_="ass")) == 5
        assert re.findall(r"\{[^{}]*\}|m 0 0 l 9 9|\\N", found) == re.findall(r"\{[^{}]*\}|m 0 0 l 9 9|\\N", text)
        if way == "upper":
            assert "{\\an8\\i1}THE BIG, OLD\\NHOUSE" in found and ",IS{\\i0} HERE." in found
        if way == "same":
            assert found == text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"{\k20}ka{\k20}ra{\k20}te {\k10}time", r"{\k20}KA{\k20}RA{\k20}TE {\k10}TIME"),
        (r"{\an7\p1\c&HFF&}m 0 0 b 1 1{\p0}The end {note}here", r"{\an7\p1\c&HFF&}m 0 0 b 1 1{\p0}THE END {note}HERE"),
        (r"One\hday\NI was{\i1} there{\i0}", r"ONE\hDAY\NI WAS{\i1} THERE{\i0}"),
    ],
)
def test_codes_of_substation_alpha(text, wanted):
    head = "[Events]\nFormat: Start, End, Style, Text\nDialogue: 0:00:01.00,0:00:02.00,a,"
    assert through("ass", head + text)[0].decode() == head + wanted


def test_cues_without_empty_lines_and_with_odd_times():
    text = "1\n-00:00:01,000 --> 00:00:00,500\nOne\n2\n00:00:09,000 --> 00:00:02,000\nTwo.\n"
    found, (lines,) = through("srt", text)
    assert lines == ["One", "<p>", "Two."] and found.decode() == text.replace("One", "ONE").replace("Two", "TWO")
