"""``docnmt postprocess``: plain text, scores, bad input."""

import json
import shutil

import pytest

from docnmt_fairseq import cli
from tests.support.documents import write_lines
from tests.support.scored import generate_log

TOKENS = ["the dog saw Ann , it ran .", "<p>", '" so what ? "', "", "it isn 't .", ""]
TEXT = ["The dog saw Ann, it ran.", "<p>", '"So what?"', "", "It isn't.", ""]
OPTIONS = {"source_lang": "es", "target_lang": "en", "tokenizer": "moses", "source_tokenizer": None,
           "target_tokenizer": None, "truecase": True, "subwords": "bpe"}  # fmt: skip


@pytest.fixture
def data(tmp_path):
    """Files of an output of ``docnmt prepare`` that the command reads."""
    folder = tmp_path / "data"
    write_lines(folder / "manifest.json", [json.dumps({"options": OPTIONS})])
    write_lines(folder / "text" / "test.es", [line and f"{line} es" if line != "<p>" else line for line in TEXT])
    write_lines(folder / "text" / "test.en", TEXT)
    write_lines(folder / "truecased" / "test.en", TOKENS)
    return folder


def run(data, lines, *options):
    log = write_lines(data / "log", generate_log(lines))
    output = data.parent / "out" / "test.txt"
    status = cli.main(["postprocess", "--data", str(data), "--log", str(log), "--output", str(output), *options])
    return status, output


def test_plain_text_and_perfect_scores(data, capsys):
    status, output = run(data, TOKENS)
    assert status == 0
    assert output.read_text().split("\n")[:-1] == TEXT
    printed = capsys.readouterr().out
    assert "BLEU 100.00 (nrefs:1|case:mixed" in printed and "as multi-bleu.perl: 100.00" in printed
    assert "\n3 sentences\n" in printed


def test_tokens_are_scored_against_tokens(data, capsys):
    run(data, [line.replace("Ann ,", "Ann,") for line in TOKENS])
    printed = capsys.readouterr().out
    assert "BLEU 100.00 (nrefs:1" in printed and "as multi-bleu.perl: 100.00" not in printed


def test_text_that_was_not_tokenised(data, capsys):
    options = {**OPTIONS, "tokenizer": "none", "truecase": False, "subwords": "none"}
    write_lines(data / "manifest.json", [json.dumps({"options": options})])
    shutil.rmtree(data / "truecased")
    (data / "data-bin").mkdir()
    for given in (data, data / "data-bin"):
        status, output = run(given, TEXT)
        assert status == 0 and output.read_text().split("\n")[:-1] == TEXT
    assert "as multi-bleu.perl: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "tokens, options, message",
    [
        (["\u2581the \u2581dog", *TOKENS[1:]], [], "--remove-bpe sentencepiece"),
        (TOKENS[:3], [], "lacks: 4;"),
        (TOKENS, ["--split", "valid"], "text/valid.es"),
        (TOKENS, ["--data", "nowhere"], "--data nowhere"),
    ],
)
def test_bad_input(data, capsys, tokens, options, message):
    status, output = run(data, tokens, *options)
    assert status == 2 and not output.exists()
    assert message in capsys.readouterr().err


def test_chinese_is_scored_by_characters(data, capsys):
    options = {**OPTIONS, "source_lang": "en", "target_lang": "zh", "target_tokenizer": "jieba"}
    write_lines(data / "manifest.json", [json.dumps({"options": options})])
    for stage, lines in (("text", ["很好。", ""]), ("truecased", ["很 好 。", ""])):
        for language in ("en", "zh"):
            write_lines(data / stage / f"test.{language}", lines)
    status, output = run(data, ["很好 。", ""])
    printed = capsys.readouterr().out
    assert status == 0 and output.read_text() == "很好。\n\n"
    assert "tok:zh" in printed and "as multi-bleu.perl: 0.00" in printed
