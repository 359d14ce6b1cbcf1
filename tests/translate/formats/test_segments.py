"""How translations are laid over pieces: every word once and whole, every gap in its place."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.translate.formats.markup_projection import Gap, project
from docnmt_fairseq.translate.formats.segments import Segment, Segmentation

QUICK = settings(deadline=None, max_examples=50)
WORDS = st.sampled_from(["a", "Haus,", "(sehr)", "don't", "zwei", "Wörter.", "3.5", "-", "हिन्दी", "…", "中文字。", "x"])
SPACES = st.sampled_from(["", " ", "  ", "\n"])
GAPS = st.sampled_from(list(Gap))


@st.composite
def sentences(draw):
    """Pieces of a sentence and the gaps between; the first and the last have text."""
    number = draw(st.integers(1, 5))
    core = [draw(st.lists(WORDS, min_size=n in (0, number - 1), max_size=4)) for n in range(number)]
    pieces = [
        draw(SPACES) * (n > 0) + " ".join(words) + draw(SPACES) * (n < number - 1) for n, words in enumerate(core)
    ]
    return pieces, draw(st.lists(GAPS, min_size=number - 1, max_size=number - 1))


@QUICK
@given(sentences(), st.lists(WORDS, max_size=9).map(" ".join))
def test_all_characters_are_there_once_and_in_order(sentence, translation):
    pieces, gaps = sentence
    laid = project(translation, pieces, gaps)
    assert len(laid) == len(pieces)
    assert "".join("".join(laid).split()) == "".join(translation.split())


@QUICK
@given(sentences(), st.lists(WORDS, max_size=9).map(" ".join))
def test_words_are_never_joined_nor_cut(sentence, translation):
    pieces, gaps = sentence
    laid = project(translation, pieces, gaps)
    # A gap that parts words by itself stands for a space, as does an object.
    parts = [" " if gap in (Gap.PART, Gap.OBJECT) else "" for gap in gaps]
    text = "".join(piece + part for piece, part in zip(laid, [*parts, ""]))
    words = re.findall(r"\w+", text)
    assert "".join(words) == "".join(re.findall(r"\w+", translation))
    unspaced = re.compile("[一-鿿]")
    allowed = {word for word in re.findall(r"\w+", translation) if not unspaced.search(word)}
    assert all(word in allowed for word in words if not unspaced.search(word))


@QUICK
@given(st.lists(st.lists(st.sampled_from(["ab", "cde", "f"]), min_size=1, max_size=3), min_size=1, max_size=6))
def test_every_piece_with_words_keeps_one_if_there_are_enough(pieces):
    texts = [" ".join(piece) for piece in pieces]
    for gap in Gap:
        laid = project(
            " ".join(f"w{n}" for n in range(len(texts))), [f"{text} " for text in texts], [gap] * (len(texts) - 1)
        )
        assert [piece.strip() for piece in laid] == [f"w{n}" for n in range(len(texts))]


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


def test_punctuation_of_objects_is_not_shown_and_stays():
    # `a`, `b` (`c`): see `d`, and `e` now.
    pieces = ["", ", ", " (", "): see ", ", and ", " now."]
    division = Segmentation([Segment(pieces, [Gap.OBJECT] * 5)], split)
    assert division.lines == ["see and now."]
    assert division.restore(["SIEHE UND JETZT."]) == [["", ", ", " (", "): SIEHE ", ", UND ", " JETZT."]]
    assert division.restore([""]) == [["", ", ", " (", "): ", ",", ""]]
    assert Segmentation([Segment(["See ", "."], [Gap.OBJECT])], split).lines == ["See."]


def split(text):
    return re.findall(r"[^.]*\.\s*|[^.]+", text)


def test_sentences_go_out_and_come_back():
    unit = Segment([" One ", "two", ". Three  four. ", "5."], [Gap.OPEN, Gap.CLOSE, Gap.OBJECT])
    more = Segment(["next."], new_paragraph=False)
    division = Segmentation([unit, more, Segment(["..."]), Segment(["new."])], split)
    assert division.lines == ["One two.", "Three four.", "next.", "<p>", "new."]
    assert division.restore(division.lines) == [None, None, None, None]
    found = division.restore(["EINS ZWEI.", "Three four.", "next.", "<p>", "NEU."])
    assert found == [[" EINS ", "ZWEI", ". Three  four. ", "5."], None, None, ["NEU."]]


def test_a_sentence_that_nothing_ends_is_divided_after_six_subtitles():
    unit = Segment([f"w{n}" for n in range(14)], [Gap.PART] * 13)
    division = Segmentation([unit], lambda text: [text])
    assert [len(line.split()) for line in division.lines] == [6, 6, 2]
    assert division.restore([line.upper() for line in division.lines]) == [[f"W{n}" for n in range(14)]]


def test_what_would_read_as_a_mark_is_no_sentence():
    division = Segmentation([Segment(["<p>"]), Segment(["\u200b"])], lambda text: [text])
    assert division.lines == [] and division.restore([]) == [None, None]


def test_a_library_that_loses_text_divides_nothing():
    assert Segmentation([Segment(["One. Two."])], lambda text: ["One.", "Two."]).lines == ["One. Two."]
