"""``docnmt score``, and its reports compared with stored ones in ``score_golden``, without versions of packages.

``DOCNMT_WRITE_GOLDEN=1`` rewrites the stored reports.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import sacrebleu.metrics

from docnmt_fairseq import cli
from tests.support.comet import FakeModel, fake_package
from tests.support.scored import delimited, generate_log, made, worse, write

REFERENCE = made()
FIRST, *MORE = worse(REFERENCE, 1, 0.4)
SYSTEMS = {
    "base": [[text.upper() for text in FIRST], *MORE],
    "empty": [["", *FIRST[1:]], *MORE],
    "other": worse(REFERENCE, 2),
}
GOLDEN = Path(__file__).with_name("score_golden")
ALL = ["--metrics", "bleu", "chrf", "chrf++", "ter", "hter"]
TESTED = ["--test", "bootstrap", "randomisation", "documents", "--bootstrap-samples", "20"]
COMET = ["--source", "source", "--comet", "known"]
CASES = {
    "everything.txt": [*ALL, *TESTED],
    "default.txt": [],
    "documents.md": [*ALL, "--level", "document", "--tokenize", "zh", "--smooth", "add-k", "--format", "markdown"],
    "empty.txt": ["--system", "empty=empty", "--tokenize", "intl"],
    "comet.txt": [*COMET, "--test", "documents", "--bootstrap-samples", "20"],
    "doc_comet.json": [*COMET, "--comet-context", "2", "--comet-context-from", "hypothesis", "--format", "json"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ref", delimited(REFERENCE))
    write(tmp_path / "ref2", delimited(worse(REFERENCE, 9, 0.1)))
    write(tmp_path / "source", delimited(worse(REFERENCE, 8, 1)))
    for name, stream in SYSTEMS.items():
        write(tmp_path / name, delimited(stream))
    write(tmp_path / "other.log", generate_log(delimited(SYSTEMS["other"]), seed=4))
    monkeypatch.setitem(sys.modules, "comet", fake_package(FakeModel()))
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
    expected = sacrebleu.metrics.BLEU().corpus_score(sentences[0], [sentences[1]]).score
    assert found["scores"][0]["systems"]["log"] == expected


def test_several_references_and_output_file(folder, capsys):
    options = ["--level", "document", "--format", "markdown", "--output", "out/report.md"]
    assert run("ref2", "--system", "x=other", *options) == 0
    assert capsys.readouterr().out == "out/report.md\n"
    text = (folder / "out" / "report.md").read_text()
    assert "2 references" in text and "| system | d-BLEU | d-chrF2 |" in text and "nrefs:2|" in text


def test_seed_and_default_samples(folder, capsys):
    options = ["--metrics", "bleu", "--level", "sentence", "--format", "json", "--test", "bootstrap", "documents"]
    tests = []
    for seed in (["--seed", "5"], []):
        assert run("--system", "base=base", "--system", "other=other", *options, *seed) == 0
        tests.append(json.loads(capsys.readouterr().out)["scores"][0]["tests"])
    for name, test in tests[1].items():
        assert "|bs:1000|seed:12345|" in test["signature"] and test["samples"] == 1000
        assert test["outcomes"] != tests[0][name]["outcomes"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--system", "x=base", "--log", "x=other.log"], "--log x=other.log"),
        (["--system", "x=base", "--examples", "1"], "--examples"),
        (["--system", "x=base", "--comet", "m"], "--source"),
    ],
)
def test_bad_input(folder, capsys, arguments, message):
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


def test_comet_is_not_installed(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "comet", None)
    assert run("--system", "x=base", "--source", "source", "--comet", "m") == 2
    assert "pip install 'docnmt_fairseq[comet]'" in capsys.readouterr().err


def without_versions(text):
    text = re.sub(r"version:[^|`\"\s]+", "version:V", text)
    return re.sub(r'"docnmt_fairseq": "[^"]+"', '"docnmt_fairseq": "V"', text)


@pytest.mark.parametrize("name", CASES)
def test_reports_equal_stored_reports(folder, capsys, name):
    status = run("--system", "base=base", "--log", "other=other.log", *CASES[name])
    found = without_versions(capsys.readouterr().out)
    assert status == 0
    if os.environ.get("DOCNMT_WRITE_GOLDEN"):
        write(GOLDEN / name, found.splitlines())
    expected = (GOLDEN / name).read_text(encoding="utf-8")
    assert found == expected
