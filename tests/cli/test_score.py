import json
import sys

import pytest
import sacrebleu.metrics

from docnmt_fairseq import cli
from tests.support.scored import delimited, generate_log, made, worse, write

REFERENCE = made()
SYSTEMS = {"base": worse(REFERENCE, 1, 0.4), "other": worse(REFERENCE, 2)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ref", delimited(REFERENCE))
    write(tmp_path / "ref2", delimited(worse(REFERENCE, 9, 0.1)))
    write(tmp_path / "source", delimited(worse(REFERENCE, 8, 1)))
    for name, stream in SYSTEMS.items():
        write(tmp_path / name, delimited(stream))
    write(tmp_path / "other.log", generate_log(delimited(SYSTEMS["other"]), seed=4))
    return tmp_path


def run(*arguments):
    return cli.main(["score", "--reference", "ref", *arguments])


def test_text_and_log_score_alike(folder, capsys):
    systems = ["--system", "base=base", "--log", "log=other.log", "--system", "text=other"]
    assert run(*systems, "--metrics", "bleu", "chrf", "ter", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["empty_translations"]) == ["base", "log", "text"] and found["references"] == ["ref"]
    for column in found["scores"]:
        assert column["systems"]["log"] == column["systems"]["text"] != column["systems"]["base"]
    sentences = [[s for text in stream for s in text] for stream in (SYSTEMS["other"], REFERENCE)]
    assert (
        found["scores"][0]["systems"]["log"]
        == sacrebleu.metrics.BLEU().corpus_score(sentences[0], [sentences[1]]).score
    )


def test_several_references_one_level_and_a_file(folder, capsys):
    assert (
        run("ref2", "--system", "x=other", "--level", "document", "--format", "markdown", "--output", "out/report.md")
        == 0
    )
    assert capsys.readouterr().out == "out/report.md\n"
    text = (folder / "out" / "report.md").read_text()
    assert "2 references" in text and "| system | d-BLEU | d-chrF2 |" in text and "nrefs:2|" in text


def test_tests_are_the_same_each_time(folder, capsys):
    arguments = [
        "--system",
        "base=base",
        "--log",
        "other=other.log",
        "--test",
        "documents",
        "bootstrap",
        "--samples",
        "50",
    ]
    outputs = []
    for seed in ("5", "5", "6"):
        assert run(*arguments, "--seed", seed) == 0
        outputs.append(capsys.readouterr().out.replace(f"seed:{seed}", ""))
    assert outputs[0] == outputs[1] != outputs[2]
    assert "50 resamples of whole documents; against base" in outputs[0]


def test_tests_draw_as_often_as_is_usual_unless_told(folder, capsys):
    arguments = ["--metrics", "bleu", "--level", "sentence", "--format", "json", "--test"]
    systems = ["--system", "base=base", "--system", "other=other"]
    assert run(*systems, *arguments, "bootstrap", "randomisation", "documents") == 0
    tests = json.loads(capsys.readouterr().out)["scores"][0]["tests"]
    assert {name: test["samples"] for name, test in tests.items()} == {
        "bootstrap": 1000, "randomisation": 10_000, "documents": 1000,
    }  # fmt: skip
    for test, drawn in zip(tests.values(), ("bs:1000", "ar:10000", "bs:1000")):
        assert f"|{drawn}|seed:12345|" in test["signature"]
        p_value = test["outcomes"]["other"]["p_value"] * (test["samples"] + 1)  # in steps of one sample
        assert p_value == pytest.approx(round(p_value)) and p_value >= 1
        assert test["outcomes"]["other"]["p_value"] < 0.05


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "give --system NAME=FILE or --log NAME=FILE"),
        (["--system", "base"], "--system base: expected NAME=VALUE"),
        (["--system", "x=base", "--log", "x=other.log"], "--log x=other.log: the name 'x' comes twice"),
        (["--system", "x=nowhere"], "nowhere: cannot be read"),
        (["--system", "x=base", "--test", "documents"], "--test compares systems"),
        (["--system", "x=base", "--tokenize", "moses"], "--tokenize moses: no such tokeniser"),
        (["--system", "x=base", "--system", "y=other", "--test", "bootstrap", "--seed", "0"], "--seed 0: at least 1"),
        (["--system", "x=base", "--samples", "77"], "--samples 77: is of tests that draw; add --test bootstrap, "),
        (["--system", "x=base", "--seed", "1"], "--seed 1: is of tests that draw; add --test bootstrap, documents, "),
        (["--system", "x=base", "--system", "y=other", "--test", "signs", "--seed", "7"], "--seed 7: is of tests that"),
        (["--system", "x=base", "--comet", "m"], "give --source"),
        (["--system", "x=base", "--comet-context", "2"], "--comet-context: needs --comet"),
        (["--system", "x=base", "--source", "source", "--comet", "m", "--comet-context", "-1"], "--comet-context -1"),
        (["--log", "x=base"], "base: holds no line H-<id>"),
    ],
)
def test_bad_input(folder, capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_comet_that_is_not_installed(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    assert run("--system", "x=base", "--source", "source", "--comet", "m") == 2
    assert "pip install 'docnmt_fairseq[comet]'" in capsys.readouterr().err


def test_help_names_every_option(capsys):
    with pytest.raises(SystemExit):
        cli.main(["score", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for text in ("whole documents", "--on-empty", "none for published scores over tokens", "doc-COMET"):
        assert text in shown


def test_an_option_of_a_metric_that_is_not_asked_for_is_refused(folder, capsys):
    assert run("--system", "base=base", "--metrics", "chrf", "--tokenize", "zh") == 2
    assert "--tokenize: is no option of metric chrf; add bleu to --metrics" in capsys.readouterr().err
    assert run("--system", "base=base", "--metrics", "chrf", "bleu", "--tokenize", "zh") == 0
