"""Projection of markup onto translations, and sentences of segments."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.translate.formats.markup_projection import Gap, project
from docnmt_fairseq.translate.formats.segments import Segment, Segmentation

QUICK = settings(deadline=None, max_examples=50)
WORDS = st.sampled_from(["a", "Haus,", "(sehr)", "don't", "zwei", "Wörter.", "3.5", "-", "हिन्दी", "…", "中文字。", "x"])
WITH_LETTERS = WORDS.filter(lambda word: any(map(str.isalnum, word)))  # punctuation next to objects belongs to them
SPACES = st.sampled_from(["", " ", "  ", "\n"])
GAPS = st.sampled_from(list(Gap))


@st.composite
def sentences(draw):
    """Returns pieces of a sentence and their gaps; the first and the last piece have text."""
    number = draw(st.integers(1, 5))
    core = [draw(st.lists(WITH_LETTERS, min_size=n in (0, number - 1), max_size=4)) for n in range(number)]
    pieces = [
        draw(SPACES) * (n > 0) + " ".join(words) + draw(SPACES) * (n < number - 1) for n, words in enumerate(core)
    ]
    return pieces, draw(st.lists(GAPS, min_size=number - 1, max_size=number - 1))


@QUICK
@given(sentences(), st.lists(WORDS, max_size=9).map(" ".join))
def test_projection_keeps_all_characters_in_order(sentence, translation):
    pieces, gaps = sentence
    pieces_found = project(translation, pieces, gaps)
    assert len(pieces_found) == len(pieces)
    assert "".join("".join(pieces_found).split()) == "".join(translation.split())


@QUICK
@given(sentences(), st.lists(WORDS, max_size=9).map(" ".join))
def test_projection_neither_joins_nor_cuts_words(sentence, translation):
    pieces, gaps = sentence
    pieces_found = project(translation, pieces, gaps)
    # PART and OBJECT separate words.
    parts = [" " if gap in (Gap.PART, Gap.OBJECT) else "" for gap in gaps]
    text = "".join(piece + part for piece, part in zip(pieces_found, [*parts, ""]))
    words = re.findall(r"\w+", text)
    assert "".join(words) == "".join(re.findall(r"\w+", translation))
    unspaced = re.compile("[一-鿿]")
    allowed = {word for word in re.findall(r"\w+", translation) if not unspaced.search(word)}
    assert all(word in allowed for word in words if not unspaced.search(word))


@QUICK
@given(st.lists(st.lists(st.sampled_from(["ab", "cde", "f"]), min_size=1, max_size=3), min_size=1, max_size=6))
def test_every_piece_with_words_keeps_one(pieces):
    texts = [" ".join(piece) for piece in pieces]
    for gap in Gap:
        pieces_found = project(
            " ".join(f"w{n}" for n in range(len(texts))), [f"{text} " for text in texts], [gap] * (len(texts) - 1)
        )
        assert [piece.strip() for piece in pieces_found] == [f"w{n}" for n in range(len(texts))]


@pytest.mark.parametrize(
    ("translation", "pieces", "gaps", "wanted"),
    [
        (
            "Hallo schöne Welt!",
            ["Hello ", "beautiful world", "!"],
            [Gap.OPEN, Gap.CLOSE],
            ["Hallo ", "schöne Welt", "!"],
        ),
        (
            "Er mag Paris sehr.",
            ["He really likes ", "Paris", "."],
            [Gap.OPEN, Gap.CLOSE],
            ["Er mag ", "Paris", " sehr."],
        ),
        ("eins zwei drei", ["one ", " three"], [Gap.OBJECT], ["eins ", " zwei drei"]),
        ("vier Wörter sind hier", ["four words\n", "are here"], [Gap.LINE], ["vier Wörter\n", "sind hier"]),
        ("eins", ["one\n", "two"], [Gap.LINE], ["", "eins"]),
        ("中文字幕", ["four\n", "word"], [Gap.LINE], ["中文\n", "字幕"]),
        ("Jetzt. Los", ["Go ", "now", "."], [Gap.OPEN, Gap.CLOSE], ["Jetzt. ", "Los", ""]),
        ("a b", ["un", "able"], [Gap.OPEN], ["a ", "b"]),
        ("a b", ["x", "y"], [Gap.CLOSE], ["a", " b"]),
    ],
)
def test_examples(translation, pieces, gaps, wanted):
    assert project(translation, pieces, gaps) == wanted


def test_punctuation_of_objects_is_hidden():
    # `a`, `b` (`c`): see `d`, and `e` now.
    pieces = ["", ", ", " (", "): see ", ", and ", " now."]
    found = Segmentation([Segment(pieces, [Gap.OBJECT] * 5)], split)
    assert found.lines == ["see and now."]
    assert found.restore(["SIEHE UND JETZT."]) == [["", ", ", " (", "): SIEHE ", ", UND ", " JETZT."]]
    assert found.restore([""]) == [["", ", ", " (", "): ", ",", ""]]
    assert Segmentation([Segment(["See ", "."], [Gap.OBJECT])], split).lines == ["See."]


OBJECTS = [
    (["Run: ", "."], ["Run:"], ["RUN: ", "."]),
    (["Values: ", " / ", "!"], ["Values:"], ["VALUES: ", " / ", "!"]),
    (["See ", " - ", "?"], ["See?"], ["SEE ", " - ", "?"]),
    (["It is a ", " \u2013 ", " \u2013 which works. And \"", "\"."], ["It is a which works.", "And."],
     ["IT IS A ", " \u2013 ", " \u2013 WHICH WORKS. AND \"", "\"."]),
    (["", ". Now: ", ". Then ", ", go."], ["Now:", "Then go."], ["", ". NOW: ", ". THEN ", ", GO."]),
    (["Click", "here ", " (now)."], ["Click here (now)."], ["CLICK", "HERE ", " (NOW)."]),
]  # fmt: skip


@pytest.mark.parametrize(("pieces", "shown", "wanted"), OBJECTS)
def test_punctuation_stays_on_its_side_of_an_object(pieces, shown, wanted):
    found = Segmentation([Segment(pieces, [Gap.OBJECT] * (len(pieces) - 1))], split)
    assert found.lines == shown
    assert found.restore([line.upper() for line in shown]) == [wanted]


def test_punctuation_of_objects_inside_tags():
    found = Segmentation([Segment(["Yes: ", "", "", "."], [Gap.OPEN, Gap.OBJECT, Gap.CLOSE])], split)
    assert found.lines == ["Yes:"] and found.restore(["JA:"]) == [["JA: ", "", "", "."]]


def test_words_stay_in_the_elements_of_a_list():
    pieces, gaps = (
        ["", "One", " | ", "Two ", "three", "", "."],
        [Gap.OPEN, Gap.CLOSE, Gap.OPEN, Gap.OPEN] + [Gap.CLOSE] * 2,
    )
    found = Segmentation([Segment(pieces, gaps)], split)
    assert found.lines == ["One", "Two three"]
    assert found.restore(["EINS ZWEI DREI", "VIER"])[0][:3] == ["", "EINS ZWEI DREI", " | "]
    found = Segmentation([Segment(["", "One", " ", "two", ""], [Gap.OPEN, Gap.CLOSE] * 2)], split)
    assert found.lines == ["One two"]


def split(text):
    return re.findall(r"[^.]*\.\s*|[^.]+", text)


def test_sentences_are_restored():
    segment = Segment([" One ", "two", ". Three  four. ", "5."], [Gap.OPEN, Gap.CLOSE, Gap.OBJECT])
    more = Segment(["next."], new_paragraph=False)
    found = Segmentation([segment, more, Segment(["..."]), Segment(["new."])], split)
    assert found.lines == ["One two.", "Three four.", "next.", "<p>", "new."]
    assert found.restore(found.lines) == [None, None, None, None]
    found = found.restore(["EINS ZWEI.", "Three four.", "next.", "<p>", "NEU."])
    assert found == [[" EINS ", "ZWEI", ". Three  four. ", "5."], None, None, ["NEU."]]


def test_long_sentences_are_divided_after_six_subtitles():
    segment = Segment([f"w{n}" for n in range(14)], [Gap.PART] * 13)
    found = Segmentation([segment], lambda text: [text])
    assert [len(line.split()) for line in found.lines] == [6, 6, 2]
    assert found.restore([line.upper() for line in found.lines]) == [[f"W{n}" for n in range(14)]]


def test_boundaries_are_not_sentences():
    found = Segmentation([Segment(["<p>"]), Segment(["\u200b"])], lambda text: [text])
    assert found.lines == [] and found.restore([]) == [None, None]


def test_splitters_that_lose_text_are_ignored():
    assert Segmentation([Segment(["One. Two."])], lambda text: ["One.", "Two."]).lines == ["One. Two."]
