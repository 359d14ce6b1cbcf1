import pytest

from docnmt_fairseq.corpus.synth import Case
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.phenomena import accuracy_of, by_distance_range, judge, measure

CASES = [
    Case(0, 0, "pronoun", 1, "er", ("es", "sie"), "it"),
    Case(1, 0, "pronoun", 2, "sie", ("er", "es"), "it"),
    Case(3, 0, "formality", 2, "du", ("Sie",), "you"),
    Case(4, 1, "formality", 5, "Sie", ("du",), "you"),
]


@pytest.mark.parametrize(
    "lines, expected",
    [
        (["er geht", "da ist sie", "<p>", "du", "kommen Sie"], [True] * 4),
        (["es geht", "er", "<p>", "Sie", "kommst du"], [False] * 4),
        (["er es geht", "sie sie", "<p>", "", "Sie!"], [False, True, False, False]),
        (["erst", "siehe", "<p>", "du", "wo"], [False, False, True, False]),
    ],
)
def test_right_form_and_no_wrong_one(lines, expected):
    assert judge(CASES, lines) == expected


def test_accuracy_by_kind_and_distance():
    found = measure(CASES, ["er geht", "er geht", "<p>", "du", "kommst du"])
    assert (found.overall.right, found.overall.cases) == (2, 4)
    assert {kind: figure.share for kind, figure in found.by_kind.items()} == {"pronoun": 0.5, "formality": 0.5}
    assert {d: (figure.right, figure.cases) for d, figure in found.by_distance.items()} == {
        1: (1, 1),
        2: (1, 2),
        5: (0, 1),
    }
    assert found.by_kind_and_distance["pronoun"][2].share == 0 and found.by_kind_and_distance["formality"][2].share == 1
    ranges = by_distance_range(found, [(1, 2), (3, 4), (5, 6)])
    assert {ends: (figure.right, figure.cases) for ends, figure in ranges.items()} == {(1, 2): (2, 3), (5, 6): (0, 1)}
    assert found.to_json()["by_distance"]["2"]["accuracy"] == 0.5


def test_interval_is_wilsons():
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81 of 263 gives 0.2553 to 0.3662.
    figure = accuracy_of(81, 263)
    assert (round(figure.low, 4), round(figure.high, 4)) == (0.2553, 0.3662)


def test_case_beyond_the_text_is_refused():
    with pytest.raises(InputError, match="line 5 of the phenomena table"):
        judge(CASES, ["er"] * 4)
