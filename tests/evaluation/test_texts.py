"""Test sets, translations as delimited text, and the output of fairseq-generate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.evaluation.texts import (
    parse_generate_log,
    read_log,
    read_references,
    read_text,
    restore_document_order,
)
from tests.support.scored import delimited, documents, generate_log, write

REFERENCE = ["a b", "<p>", "c", "", "d", "e", ""]
NOISE = "2024-01-01 00:00:00 | INFO | fairseq_cli.generate | loading H-3 model"


@pytest.fixture
def references(tmp_path):
    return read_references([write(tmp_path / "ref", REFERENCE)])


def test_references_and_source_by_document(tmp_path):
    files = [
        write(tmp_path / name, [f"{line}{name}" if len(line) in (1, 2) else line for line in REFERENCE])
        for name in "xyz"
    ]
    found = read_references(files[:2], files[2])
    assert found.streams[1] == [["a b", "cy"], ["dy", "ey"]] and found.source == [["a b", "cz"], ["dz", "ez"]]
    assert found.lines == [[1, 3], [5, 6]] and (found.documents, found.sentences) == (2, 4)
    with pytest.raises(InputError, match="other:3: "):
        read_references([files[0], write(tmp_path / "other", ["a", "<p>", "", "", "d", "e", ""])])


@settings(max_examples=30, deadline=None)
@given(stream=documents, seed=st.integers(0, 999), nbest=st.integers(1, 3))
def test_log_is_restored_to_document_order(tmp_path_factory, stream, seed, nbest):
    folder, lines = tmp_path_factory.mktemp("log"), delimited(stream)
    references = read_references(
        [write(folder / "ref", [line and f"{line} x" if line != "<p>" else line for line in lines])]
    )
    blocks = generate_log(lines, seed, nbest)
    log = write(folder / "log", [NOISE, *blocks, "Generate test: BLEU4 = 1"])
    assert read_log(log, references) == stream == read_text(write(folder / "text", lines), references)


def test_translated_boundaries_are_ignored(tmp_path):
    log = write(tmp_path / "log", [f"H-{i}\t-1\tx{i}" for i in (3, 1, 4, 0, 2)])
    source = write(tmp_path / "source", ["a", "<p>", "b", "", "c"])
    assert restore_document_order(log, source) == ["x0", "<p>", "x2", "", "x4"]


def test_detokenised_and_empty_hypotheses(tmp_path):
    log = write(tmp_path / "log", ["S-1\ta", "H-1\t-inf\t", "S-0\tb", "H-0\t-1.5e-3\tx y"])
    assert parse_generate_log(log) == {0: "x y", 1: ""}
    log = write(tmp_path / "log", ["H-1\t-0.1\tone", "D-1\t-0.1\tOne.", "H-0\t-0.1\tzero"])
    assert parse_generate_log(log) == {0: "zero", 1: "One."}


def run_of(ids):
    return [line for i in ids for line in (f"S-{i}\tx", f"H-{i}\t-1\ty", f"D-{i}\t-1\ty")]


@pytest.mark.parametrize(
    "lines, message",
    [
        (run_of([0, 2, 4]), "lacks: 5;"),
        (run_of([0, 2, 4, 5]) + run_of([2, 4]), "repeated ids 2, 4;"),
        (run_of([0, 2, 4, 5, 9]), "lacks: 9;"),
        (["S-0\ta", "H-0\tx y", NOISE], "lacks: 0, 2, 4, 5;"),
    ],
)
def test_bad_logs(tmp_path, references, lines, message):
    with pytest.raises(InputError, match=message):
        read_log(write(tmp_path / "log", lines), references)


@pytest.mark.parametrize(
    "lines, message",
    [
        (REFERENCE[:5], r"ref:6: "),
        ([*REFERENCE, "f"], r"text:8: "),
        (["a", "<p>", "c", "d", "", "e", ""], "text:4: a sentence here, but the end of a document"),
        (["a", "", "c", "", "d", "e", ""], "text:2: the end of a document here, but <p>"),
        (["a", "<p>", "<p>", "", "d", "e", ""], "text:3: <p> here, but a sentence"),
        (["a", "<p>", "c", "", "\u2581d", "e", ""], "--remove-bpe"),
        (["a", "<p>", "c", "", "d@@ f", "e", ""], "--remove-bpe"),
    ],
)
def test_bad_translations(tmp_path, references, lines, message):
    with pytest.raises(InputError, match=message):
        read_text(write(tmp_path / "text", lines), references)


def test_empty_translations(tmp_path, references):
    text = write(tmp_path / "text", ["a", "<p>", "", "", "", "e", ""])
    assert read_text(text, references) == [["a", ""], ["", "e"]]
    with pytest.raises(InputError, match=r"text:3: .*--on-empty score"):
        read_text(text, references, "error")
    log = write(tmp_path / "log", ["H-0\t-1\ta", "H-2\t-1\t", "H-4\t-1\t", "H-5\t-1\te"])
    assert read_log(log, references) == [["a", ""], ["", "e"]]
