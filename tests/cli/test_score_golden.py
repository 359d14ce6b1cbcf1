"""Reports of ``docnmt score`` compared with stored reports in ``score_golden``, without versions of packages.

``DOCNMT_WRITE_GOLDEN=1`` rewrites the stored reports.
"""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from docnmt_fairseq import cli
from tests.support.comet import FakeModel, fake_package
from tests.support.scored import delimited, generate_log, made, worse, write

GOLDEN = Path(__file__).with_name("score_golden")
ALL = ["--metrics", "bleu", "chrf", "chrf++", "ter", "hter"]
TESTED = ["--test", "bootstrap", "randomisation", "documents", "--bootstrap-samples", "20"]
COMET = ["--source", "source", "--comet", "known"]
CASES = {
    "everything.txt": [*ALL, *TESTED],
    "everything.json": [*ALL, *TESTED, "--format", "json"],
    "default.txt": [],
    "references.txt": [*ALL, "--reference", "ref", "ref2", "--test", "documents", "--bootstrap-samples", "9"],
    "lowercase.txt": [*ALL, "--lowercase", "--tokenize", "char", "--smooth", "floor"],
    "tokens.txt": ["--metrics", "bleu", "hter", "--tokenize", "none", "--smooth", "none", "--level", "sentence"],
    "documents.md": [*ALL, "--level", "document", "--tokenize", "zh", "--smooth", "add-k", "--format", "markdown"],
    "empty.txt": ["--system", "empty=empty", "--tokenize", "intl"],
    "comet.txt": [*COMET, "--test", "documents", "--bootstrap-samples", "20"],
    "doc_comet.json": [*COMET, "--comet-context", "2", "--comet-context-from", "hypothesis", "--format", "json"],
    "comet_beside_documents.md": [*COMET, "--level", "document", "--metrics", "ter", "--format", "markdown"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    reference = made()
    first = worse(reference, 1, 0.4)
    write(tmp_path / "ref", delimited(reference))
    write(tmp_path / "ref2", delimited(worse(reference, 9, 0.1)))
    write(tmp_path / "source", delimited(worse(reference, 8, 1)))
    write(tmp_path / "base", delimited([[text.upper() for text in first[0]], *first[1:]]))
    write(tmp_path / "empty", delimited([["", *first[0][1:]], *first[1:]]))
    write(tmp_path / "other.log", generate_log(delimited(worse(reference, 2)), seed=4))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "comet", fake_package(FakeModel()))
    return tmp_path


def without_versions(text):
    text = re.sub(r"version:[^|`\"\s]+", "version:V", text)
    return re.sub(r'"docnmt_fairseq": "[^"]+"', '"docnmt_fairseq": "V"', text)


def assert_same(found, expected):
    """Compares JSON values, with a tolerance for rounding of figures."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other)
    else:
        assert found == (pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected)


QUICK = ("default.txt", "documents.md", "comet.txt")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in CASES])
def test_reports_equal_stored_reports(folder, capsys, name):
    arguments = CASES[name]
    reference = [] if "--reference" in arguments else ["--reference", "ref"]
    status = cli.main(["score", *reference, "--system", "base=base", "--log", "other=other.log", *arguments])
    found = without_versions(capsys.readouterr().out)
    assert status == 0
    if os.environ.get("DOCNMT_WRITE_GOLDEN"):
        write(GOLDEN / name, found.splitlines())
    expected = (GOLDEN / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        assert_same(json.loads(found), json.loads(expected))
    else:
        assert found == expected
