"""``docnmt score --examples``: sentences that systems translate differently."""

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


def score(folder, *words, source=True):
    systems = ["--system", f"one={folder / 'one'}", "--system", f"two={folder / 'two'}"]
    texts = ["--reference", str(folder / "ref"), *(["--source", str(folder / "src")] if source else [])]
    return cli.main(["score", *texts, *systems, *words])


def examples(folder, capsys, *words, **options):
    assert score(folder, "--format", "json", *words, **options) == 0
    return json.loads(capsys.readouterr().out)["examples"]


def test_differing_sentences_with_context(folder, capsys):
    report = examples(folder, capsys, "--examples", "9")
    assert (report["differing"], report["sentences"]) == (3, 5)
    third, last = report["shown"][1:]
    assert [(one["line"], one["document"]) for one in report["shown"]] == [(2, 1), (4, 1), (7, 2)]
    assert third["context"] == ["A B C", "D E F"] and last["context"] == ["K L M"]
    assert (third["source"], third["references"]) == ("G H I", ["g h i"])
    assert third["translations"] == {"one": "g h i", "two": "x x i"}
    chrf = [sacrebleu.sentence_chrf(text, ["g h i"]).score for text in ("x x i", "g h i")]
    assert third["difference"] == pytest.approx(chrf[0] - chrf[1])
    last = examples(folder, capsys, "--examples", "9", source=False)["shown"][-1]
    assert last["source"] is None and last["context"] == ["k l m"]


def test_order_by_gain_and_loss(folder, capsys):
    gains = [
        one["difference"] for one in examples(folder, capsys, "--examples", "9", "--example-order", "gain")["shown"]
    ]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0 > gains[-1]
    (loss,) = examples(folder, capsys, "--example-order", "loss", "--examples", "1")["shown"]
    assert loss["line"] == 4 and loss["difference"] == gains[-1]
    (by_errors,) = examples(folder, capsys, "--examples", "1", "--example-order", "loss", "--example-metric", "ter")[
        "shown"
    ]
    assert by_errors["line"] == 4 and by_errors["difference"] < 0  # fewer errors are a gain


def test_sentence_bleu_of_selected_lines(folder, capsys):
    shown = examples(folder, capsys, "--example-metric", "bleu", "--example-lines", "2", "4", "6")["shown"]
    assert [one["line"] for one in shown] == [2, 4, 6]
    for example in shown:
        scores = [
            sacrebleu.sentence_bleu(example["translations"][name], example["references"]).score
            for name in ("one", "two")
        ]
        assert example["difference"] == pytest.approx(scores[1] - scores[0])
    assert shown[0]["difference"] > 50  # short sentences have a score


def test_examples_in_text(folder, capsys):
    assert score(folder, "--example-lines", "7", "--example-context", "1") == 0
    text = capsys.readouterr().out
    assert "3 of 5 sentences differ" in text and "line 7, document 2; chrF2 +" in text
    order = [text.index(one) for one in ("K L M", "N O P", "n o p", "n x x", "n x p")]
    assert order == sorted(order)
