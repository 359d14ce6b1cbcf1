"""Sections, chapters and parts from the text to positions, and back into the translation."""

import json

import pytest
from fairseq.data import Dictionary, data_utils

from docnmt_fairseq.cli import main
from tests.support import toy
from tests.support.documents import write_lines

BOOK = ["a b", "c", "<p>", "d e", "<p> <p>", "a", "<p>", "b c d", "<p> <p> <p>", "e", "<p> <p> <p> <p>", "c a", ""]
LETTER = ["b", "<p>", "a c", "e d", ""]
POSITIONS = ["--section-positions", "learned", "--chapter-positions", "sinusoidal", "--part-positions", "learned"]
SEARCH = ["--beam", "2", "--max-len-b", "8"]


def reversed_lines(lines):
    return [line if "<p>" in line else " ".join(reversed(line.split())) for line in lines]


@pytest.fixture(scope="module", params=["none", pytest.param("unigram", marks=pytest.mark.slow)])
def prepared(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    command = ["prepare", "-s", "src", "-t", "tgt", "--output", str(folder / "data"), "--subwords", request.param]
    command += ["--vocab-size", "14"] if request.param == "unigram" else []
    for split, lines in (("train", (BOOK + LETTER) * 8), ("valid", LETTER), ("test", LETTER + BOOK)):
        write_lines(folder / f"{split}.src", lines)
        write_lines(folder / f"{split}.tgt", reversed_lines(lines))
        command += [f"--{split}", str(folder / split)]
    assert not main(command)
    return folder / "data"


def train(data, folder, *options):
    fixed = ["--max-update", "12", "--lr", "0.05"]
    return toy.train(data / "data-bin", folder, *POSITIONS, *fixed, *options)


def test_boundaries_in_the_data_bin(prepared):
    lines = data_utils.load_indexed_dataset(str(prepared / "data-bin" / "test.src-tgt.src"), None, "mmap")
    symbols = (prepared / "data-bin" / "dict.src.txt").read_text().splitlines()
    mark = 4 + next(number for number, line in enumerate(symbols) if line.startswith("<p> "))
    for line, tokens in zip(LETTER + BOOK, lines):
        if not line or "<p>" in line:
            assert tokens.tolist() == [mark] * line.count("<p>") + [2]
    counts = json.loads((prepared / "manifest.json").read_text())["counts"]["test"]
    assert (counts["documents"], counts["paragraphs"], counts["sentences"]) == (2, 8, 10)
    sentences = [tokens for line, tokens in zip(LETTER + BOOK, lines) if line and "<p>" not in line]
    assert counts["subword_tokens"]["src"] == sum(len(tokens) - 1 for tokens in sentences)


def test_positions_use_boundaries(prepared, tmp_path):
    """The same text with other marks has other scores, behind the mark and there only."""
    checkpoint = train(prepared, tmp_path / "model")
    source = tmp_path / "in"

    def scores(lines):
        write_lines(source, lines)
        command = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--input", str(source), "--cpu"]
        assert not main([*command, "--output", str(tmp_path / "out"), "--beam", "1", "--scores", "--force"])
        rows = (tmp_path / "out.scores.tsv").read_text().splitlines()
        return [row.split("\t")[2:] for row in rows]

    of_paragraphs, of_sections = scores(["a b", "<p>", "a b", ""]), scores(["a b", "<p> <p>", "a b", ""])
    assert of_paragraphs[0] == of_sections[0] and of_paragraphs[-1] != of_sections[-1]


def test_translations_keep_boundaries(prepared, tmp_path):
    checkpoint = train(prepared, tmp_path / "model")
    write_lines(tmp_path / "in", BOOK + LETTER)
    command = ["translate", "--path", str(checkpoint), "--data", str(prepared), "--input", str(tmp_path / "in")]
    assert not main([*command, "--output", str(tmp_path / "out"), "--cpu", "--beam", "1", "--min-len", "1"])
    found = (tmp_path / "out").read_text().splitlines()
    assert [line if not line or "<p>" in line else "s" for line in found] == [
        line if not line or "<p>" in line else "s" for line in BOOK + LETTER
    ]


@pytest.mark.slow
@pytest.mark.parametrize("limits", [[], ["--max-document-tokens", "6"]], ids=str)
def test_interactive_counts_boundaries(prepared, tmp_path, limits):
    """Without context a sentence depends on its places alone, so that what was forgotten must still be counted."""
    checkpoint = train(prepared, tmp_path / "model", "--sentence-positions", "learned", *limits)
    expected = toy.generate(prepared / "data-bin", checkpoint, *SEARCH, *limits).hypotheses
    dictionary = Dictionary.load(str(prepared / "data-bin" / "dict.src.txt"))
    lines = data_utils.load_indexed_dataset(str(prepared / "data-bin" / "test.src-tgt.src"), None, "mmap")
    write_lines(tmp_path / "in", [dictionary.string(tokens) for tokens in lines])
    for buffer in ("1", "5"):
        typed = ["--buffer-size", buffer, *SEARCH, *limits]
        found = toy.interactive(prepared / "data-bin", checkpoint, tmp_path / "in", *typed).hypotheses
        assert found == expected, buffer
