"""Delimited text: reading, writing, boundaries, errors with file and line."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.corpus.delimited import read_documents, write_documents
from docnmt_fairseq.corpus.document import Document
from docnmt_fairseq.corpus.text import is_blank
from docnmt_fairseq.errors import InputError


def files(folder, *sides):
    """Writes one file per side and returns their paths."""
    paths = [folder / f"corpus.{language}" for language in ("en", "de", "fr")[: len(sides)]]
    for path, text in zip(paths, sides):
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return paths


def read(paths, **options):
    return [document.paragraphs for document in read_documents(paths, **options)]


sentences = st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8"), min_size=1).filter(
    lambda text: text == text.strip() and set(text.split()) != {"<p>"} and not is_blank(text) and text[0] != "\ufeff"
)


@settings(max_examples=15)
@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(st.lists(st.lists(st.tuples(*[sentences] * n), min_size=1), min_size=1))
    )
)
def test_round_trip(tmp_path_factory, documents):
    folder = tmp_path_factory.mktemp("round")
    sides = len(documents[0][0][0]) if documents else 1
    paths = [folder / str(side) for side in range(sides)]
    assert write_documents(map(Document, documents), paths) == len(documents)
    assert read(paths) == documents


@given(st.lists(st.lists(st.tuples(st.integers(1, 4), sentences), min_size=1), min_size=1))
def test_round_trip_of_sections(tmp_path_factory, documents):
    path = tmp_path_factory.mktemp("sections") / "text"
    written = [
        Document([[(text,)] for _, text in document], ended=[levels for levels, _ in document][:-1])
        for document in documents
    ]
    write_documents(written, [path])
    assert list(read_documents([path])) == written
    marks = [line.count("<p>") for line in path.read_text(encoding="utf-8").split("\n") if set(line.split()) == {"<p>"}]
    assert marks == [levels for document in documents for levels, _ in document[:-1]]


def test_line_numbers(tmp_path):
    (first, second) = read_documents(files(tmp_path, "a\n\n\nb\n<p>\nc\n", "A\n\n\nB\n<p>\nC"))
    assert first.lines == [[(1, 1)]]
    assert second.lines == [[(4, 4)], [(6, 6)]]
    assert str(second.error(1, 0, 1, "bad")).endswith("corpus.de:6: bad")


@pytest.mark.parametrize(
    "text",
    [
        "a\n\nb\n<p>\nc\n",
        "\n\na\n\n \n\t\nb\n<p>\nc\n<p>\n\n\n",
        "a\r\n\r\nb\r\n <p> \r\nc",
        "\ufeffa\n\nb\n<p>\nc\n<p>",
    ],
)
def test_equivalent_files(tmp_path, text):
    assert read(files(tmp_path, text)) == [[[("a",)]], [[("b",)], [("c",)]]]


@pytest.mark.parametrize("blank", ["\u200b", "\ufeff", "\xa0", "\u200e\u2060", "\xad", "\ufeff \u200c", "\u3164\u2800"])
def test_lines_without_visible_characters_end_documents(tmp_path, caplog, blank):
    source, target = f"a\n{blank}\nb\n\nc\n{blank}\n", f"A\n\nB\n{blank}\nC\n"
    for empty_sides in (False, True):
        paths = files(tmp_path, source, target)
        assert read(paths, empty_sides=empty_sides) == [[[("a", "A")]], [[("b", "B")]], [[("c", "C")]]]
    assert blank == "\xa0" or "corpus.en: 2 lines without visible characters read as empty lines: 2, 6" in caplog.text


@pytest.mark.parametrize(
    ("source", "target"), [("a\n\nb\n\n", "A\n\nB"), ("a\n\nb", "A\n\nB\n\n\n \n"), ("a\n\nb\n\n\n", "A\n\nB\n\n")]
)
def test_empty_lines_at_the_end_of_one_side(tmp_path, source, target):
    assert read(files(tmp_path, source, target)) == [[[("a", "A")]], [[("b", "B")]]]


def test_carriage_returns(tmp_path, caplog):
    for source in ("a\rb\r\rc\r", "a\rb\r\rc\n", "a\rb\r\rc"):
        assert read(files(tmp_path, source, "A\nB\n\nC\n")) == [[[("a", "A"), ("b", "B")]], [[("c", "C")]]]
    assert not caplog.records
    assert read(files(tmp_path, "a\r\nb\rc\nd\re\n\n")) == [[[("a",), ("b\rc",), ("d\re",)]]]
    (record,) = caplog.records
    assert "corpus.en:2: carriage return inside the line" in record.message


def test_file_without_boundaries_is_one_document(tmp_path, caplog):
    paths = files(tmp_path, "a\nb\n")
    assert read(paths) == [[[("a",), ("b",)]]]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "a single document" in record.message
    caplog.clear()
    assert read(paths, one_document_a_line=True) == [[[("a",)]], [[("b",)]]]
    assert read(files(tmp_path, "a\n\n")) == [[[("a",)]]]
    assert not caplog.records


@pytest.mark.parametrize(
    "source, target, side, parts",
    [
        ("a\n\nb\n", "A\nB\nC\n", 0, ["2: empty line", "corpus.de"]),
        ("a\nb\n", "A\n\n", 1, ["2: empty line", "corpus.en"]),
        ("a\n<p>\nc\n", "A\n<p> <p>\nC\n", 1, ["2: <p> <p> here", "corpus.en"]),
        ("a\nb\n", "A\nB\nC\n", 1, ["3: ", "corpus.en ended", "number of lines"]),
        ("a\nb\n", b"A\nB\xe9\n", 1, ["2: ", "UTF-8"]),
        ("a\n<p>\n<p> <p>\nb", "a\n<p>\n<p> <p>\nb", 0, ["3: misplaced <p> <p>"]),
    ],
)
def test_bad_lines(tmp_path, source, target, side, parts):
    paths = files(tmp_path, source, target)
    with pytest.raises(InputError) as error:
        read(paths)
    assert str(error.value).startswith(f"{paths[side]}:{parts[0]}")
    assert all(part in str(error.value) for part in parts)


@pytest.mark.parametrize(
    "paragraphs, message",
    [
        ([[("a", " ")]], "' '"),
        ([[("a", "<p> <p>")]], "<p> <p>"),
        ([[("a", "b\nc")]], "one line"),
    ],
)
def test_sentence_that_cannot_be_written(tmp_path, paragraphs, message):
    paths = [tmp_path / "out.en", tmp_path / "out.de"]
    paths[0].write_text("earlier")
    with pytest.raises(InputError, match=message):
        write_documents([Document([[("x", "y")]]), Document(paragraphs)], paths)
    assert [path.name for path in tmp_path.iterdir()] == ["out.en"]
    assert paths[0].read_text() == "earlier"
