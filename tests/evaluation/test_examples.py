"""``docnmt compare``: sentences that systems translate differently."""

import json

import pytest
import sacrebleu

from docnmt_fairseq import cli
from tests.support.documents import write_lines

FILES = {
    "ref": ["a b c", "d e f", "<p>", "g h i", "", "k l m", "n o p", ""],
    "src": ["A B C", "D E F", "<p>", "G H I", "", "K L M", "N O P", ""],
    "one": ["a b c", "d x f", "<p>", "g h i", "", "k l m", "n x x", ""],
    "two": ["a b c", "d e f", "<p>", "x x i", "", "k l m", "n x p", ""],
}


@pytest.fixture
def folder(tmp_path):
    for name, lines in FILES.items():
        write_lines(tmp_path / name, lines)
    return tmp_path


def compare(folder, *words, source=True):
    systems = ["--system", f"one={folder / 'one'}", "--system", f"two={folder / 'two'}"]
    texts = ["--reference", str(folder / "ref"), *(["--source", str(folder / "src")] if source else [])]
    return cli.main(["compare", *texts, *systems, *words])


def found(folder, capsys, *words, **options):
    assert compare(folder, "--format", "json", *words, **options) == 0
    return json.loads(capsys.readouterr().out)


def test_sentences_that_differ_with_what_stands_before_them(folder, capsys):
    report = found(folder, capsys)
    assert (report["differing"], report["sentences"]) == (3, 5)
    third, last = report["shown"][1:]
    assert [(one["line"], one["document"]) for one in report["shown"]] == [(2, 1), (4, 1), (7, 2)]
    assert third["context"] == ["A B C", "D E F"] and last["context"] == ["K L M"]
    assert (third["source"], third["references"]) == ("G H I", ["g h i"])
    assert third["translations"] == {"one": "g h i", "two": "x x i"}
    chrf = [sacrebleu.sentence_chrf(text, ["g h i"]).score for text in ("x x i", "g h i")]
    assert third["difference"] == pytest.approx(chrf[0] - chrf[1])


def test_gains_and_losses_come_first_by_any_metric(folder, capsys):
    gains = [one["difference"] for one in found(folder, capsys, "--order", "gain")["shown"]]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0 > gains[-1]
    (loss,) = found(folder, capsys, "--order", "loss", "--most", "1")["shown"]
    assert loss["line"] == 4 and loss["difference"] == gains[-1]
    by_errors = found(folder, capsys, "--order", "loss", "--by", "ter")["shown"]  # fewer errors are a gain
    assert by_errors[0]["line"] == 4 and by_errors[0]["difference"] < 0


def test_bleu_is_that_of_single_sentences(folder, capsys):
    shown = found(folder, capsys, "--by", "bleu", "--lines", "2", "4", "7")["shown"]
    for example in shown:
        scores = [sacrebleu.sentence_bleu(example["translations"][name], example["references"]).score
                  for name in ("one", "two")]  # fmt: skip
        assert example["difference"] == pytest.approx(scores[1] - scores[0]) and scores[0] != scores[1]
    assert shown[0]["difference"] > 50  # all three tokens are right


def test_lines_are_shown_alike_or_not(folder, capsys):
    report = found(folder, capsys, "--lines", "6", "1", "--context", "0")
    assert [one["line"] for one in report["shown"]] == [1, 6] and report["shown"][0]["context"] == []
    assert compare(folder, "--lines", "3", "9") == 2
    assert "--lines 3 9: no sentence of" in capsys.readouterr().err


def test_without_a_source_the_context_is_the_references(folder, capsys):
    last = found(folder, capsys, source=False)["shown"][-1]
    assert last["source"] is None and last["context"] == ["k l m"]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_side_by_side(folder, form, capsys):
    assert compare(folder, "--format", form, "--lines", "7") == 0
    text = capsys.readouterr().out
    assert "1 shown; 3 of 5 sentences differ" in text and "line 7, document 2; chrF2 +" in text
    order = [text.index(one) for one in ("K L M", "N O P", "n o p", "n x x", "n x p")]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("words", "message"), [(["--context", "-1"], "--context -1: at least 0"), (["--most", "0"], "--most 0: at least 1")]
)
def test_bad_options(folder, words, message, capsys):
    assert compare(folder, *words) == 2
    assert message in capsys.readouterr().err


def test_one_system_is_nothing_to_compare(folder, capsys):
    words = ["--reference", str(folder / "ref"), "--system", f"one={folder / 'one'}"]
    assert cli.main(["compare", *words]) == 2
    assert "nothing to compare: give at least two" in capsys.readouterr().err
