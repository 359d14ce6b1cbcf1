"""``docnmt score --synth``: accuracy on the context-dependent words of an artificial corpus."""

import json
import random

import pytest

from docnmt_fairseq.cli import main
from docnmt_fairseq.corpus.synth import Case, SynthOptions, read_cases, write_corpus
from docnmt_fairseq.evaluation.synth_report import is_correct, measure

CASES = [
    Case(0, 0, "pronoun", 1, "er", ("es", "sie"), "it"),
    Case(1, 0, "pronoun", 2, "sie", ("er", "es"), "it"),
    Case(3, 0, "formality", 2, "du", ("Sie",), "you"),
    Case(4, 1, "formality", 5, "Sie", ("du",), "you"),
]


def test_correct_form_without_incorrect_ones():
    for lines, expected in (
        (["er geht", "da ist sie", "<p>", "du", "kommen Sie"], [True] * 4),
        (["es geht", "er", "<p>", "Sie", "kommst du"], [False] * 4),
        (["er es geht", "sie sie", "<p>", "", "Sie!"], [False, True, False, False]),
        (["erst", "siehe", "<p>", "du", "wo"], [False, False, True, False]),
    ):
        assert [is_correct(case, lines) for case in CASES] == expected


def test_accuracy_by_kind_and_distance():
    found = measure(CASES, ["er geht", "er geht", "<p>", "du", "kommst du"])
    assert (found["overall"]["right"], found["overall"]["cases"]) == (2, 4)
    assert {kind: one["accuracy"] for kind, one in found["by_kind"].items()} == {"formality": 0.5, "pronoun": 0.5}
    by_distance = {distance: (one["right"], one["cases"]) for distance, one in found["by_distance"].items()}
    assert by_distance == {"1": (1, 1), "2": (1, 2), "5": (0, 1)}
    both = found["by_kind_and_distance"]
    assert both["pronoun"]["2"]["accuracy"] == 0 and both["formality"]["2"]["accuracy"] == 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    options = SynthOptions(
        train_documents=100,
        valid_documents=1,
        test_documents=40,
        max_distance=5,
        sentences_per_document=(12, 16),
        introductions=3,
    )
    write_corpus(options, folder)
    write_log(folder, "document", lambda case: case.right)
    write_log(folder, "sentence", lambda case: min(case.right, *case.wrong))
    return folder


def write_log(folder, name, choose):
    cases = {case.id: case for case in read_cases(folder / "test.phenomena.tsv")}
    lines = (folder / "test.tgt").read_text().split("\n")[:-1]
    blocks = []
    for i, line in enumerate(lines):
        words = line.split()
        if i in cases:
            words[cases[i].position] = choose(cases[i])
        if line not in ("", "<p>"):
            blocks.append(f"S-{i}\tx\nH-{i}\t-0.1\t{' '.join(words)}\nP-{i}\t-0.1\n")
    random.Random(name).shuffle(blocks)
    (folder / f"{name}.log").write_text("".join(blocks))


def score(corpus, *more):
    systems = [f"--log={name}={corpus / name}.log" for name in ("sentence", "document")]
    return main(["score", "--synth", str(corpus), *systems, *more])


def test_tables_results_and_plot(corpus, tmp_path, capsys):
    output = ["--output", str(tmp_path)]
    assert score(corpus, *output, "--assert-minimum", "document=1.0", "--assert-ceiling", "sentence") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["system", "BLEU", "chrF", "ambiguous", "formality", "pronoun", "overall"]
    assert printed[2].split() == ["document"] + ["100.0"] * 6
    assert any(line.startswith("BLEU nrefs:1") for line in printed)
    assert printed[-2:] == [str(tmp_path / "results.json"), str(tmp_path / "accuracy_by_distance.png")]
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["systems"]["document"]["phenomena"]["overall"]["accuracy"] == 1
    assert results["systems"]["sentence"]["phenomena"]["overall"]["accuracy"] < 0.6
    assert set(results["ceiling"]["kinds"]) == {"ambiguous", "formality", "pronoun"}
    assert (tmp_path / "accuracy_by_distance.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--assert-minimum", "sentence=0.95"], "ambiguous"),
        (["--assert-ceiling", "document"], "ambiguous 100.0 %"),
    ],
)
def test_failed_assertions_and_bad_input(corpus, capsys, arguments, message):
    assert score(corpus, *arguments) == 2
    assert message in capsys.readouterr().err
