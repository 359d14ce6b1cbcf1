"""JSON lines and Parquet, one document per row."""

import json

import pytest

from docnmt_fairseq.corpus.readers import Reading
from tests.support.reading import read, refused, text, write

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

ROWS = [
    {"en": ["a b", "c"], "de": ["A B", "C"], "url": "x"},
    {"en": ["d", "", "e"], "de": ["D", "", "E"], "url": "y"},
    {"en": ["f"], "de": ["F"], "url": "z"},
]
TEXT = [[[("a b", "A B"), ("c", "C")]], [[("d", "D")], [("e", "E")]], [[("f", "F")]]]


def jsonl(folder, rows, name="x.jsonl"):
    return write(folder, name, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def table(folder, rows, name="x.parquet", **options):
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / name, **options)
    return folder / name


WRITE = {"jsonl": jsonl, "parquet": table}


@pytest.mark.parametrize("name", WRITE)
def test_documents(tmp_path, name):
    path = WRITE[name](tmp_path, ROWS)
    assert text(read(name, [path])) == TEXT
    assert text(read(name, [path], Reading("de"))) == [[[(d,) for _, d in p] for p in document] for document in TEXT]
    other = WRITE[name](tmp_path, ROWS[:1], f"y.{name}")
    documents = read(name, [path, other])
    assert text(documents) == [*TEXT, TEXT[0]] and documents[1].files == (str(path),) * 2
    assert documents[1].lines == [[(2, 2)], [(2, 2)]]


@pytest.mark.parametrize("name", WRITE)
def test_text_and_paragraphs(tmp_path, name):
    for source, target in (("a\nb\n\nc\n", "A\nB\n\nC\n"), ([["a", "b"], ["c"]], [["A", "B"], ["C"]])):
        path = WRITE[name](tmp_path, [{"en": source, "de": target}])
        assert text(read(name, [path])) == [[[("a", "A"), ("b", "B")], [("c", "C")]]]


@pytest.mark.parametrize("name", WRITE)
def test_lists_of_sections_and_chapters(tmp_path, name):
    rows = [{"en": [[["a", "b"], ["c"]], [["d"]]], "de": [[["A", "B"], ["C"]], [["D"]]]}]
    (document,) = read(name, [WRITE[name](tmp_path, rows)])
    assert text([document]) == [[[("a", "A"), ("b", "B")], [("c", "C")], [("d", "D")]]] and document.ended == [1, 2]
    chapters = [{side: [value, value] for side, value in rows[0].items()}]
    (document,) = read(name, [WRITE[name](tmp_path, chapters, f"chapters.{name}")])
    assert document.ended == [1, 2, 3, 1, 2]
    deep = [{"en": [[[[[["a"]]]]]], "de": [[[[[["A"]]]]]]}]
    refused(name, [WRITE[name](tmp_path, deep, f"deep.{name}")], "up to 4 levels")


@pytest.mark.parametrize("name", WRITE)
def test_boundaries_in_text(tmp_path, name):
    path = WRITE[name](tmp_path, [{"en": "a\n<p> <p>\nb", "de": "A\n<p> <p>\nB"}])
    (document,) = read(name, [path])
    assert text([document]) == [[[("a", "A")], [("b", "B")]]] and document.ended == [2]
    unequal = WRITE[name](tmp_path, [{"en": "a\n<p> <p>\nb", "de": "A\n<p>\nB"}], f"unequal.{name}")
    refused(name, [unequal], str(unequal), ":1: <p> <p> on one side only")


@pytest.mark.parametrize("name", WRITE)
def test_fields_by_name(tmp_path, name):
    rows = [{"translation": {"en": ["a"], "de": ["A"]}, "pairs": [{"s": "b", "t": "B"}, {"s": "c", "t": "C"}]}]
    path = WRITE[name](tmp_path, rows)
    nested = Reading("en", "de", options={"fields": ["translation.en", "translation.de"]})
    assert text(read(name, [path], nested)) == [[[("a", "A")]]]
    entries = Reading("en", "de", options={"fields": ["pairs.s", "pairs.t"]})
    assert text(read(name, [path], entries)) == [[[("b", "B"), ("c", "C")]]]
    refused(
        name, [path], str(path), "--fields", options=Reading("en", "de", options={"fields": ["pairs.x", "pairs.t"]})
    )


BAD = {
    "lines": ({"en": ["a", "b"], "de": ["A"]}, "2 sentences in en, but 1 in de"),
    "missing": ({"en": ["a"]}, "no de in the row"),
    "kind": ({"en": [1], "de": ["A"]}, "en: neither text nor sentences"),
    "nothing": ({"en": None, "de": ["A"]}, "en: neither text nor sentences"),
}


@pytest.mark.parametrize(("row", "message"), BAD.values(), ids=BAD)
def test_bad_rows(tmp_path, row, message):
    refused("jsonl", [jsonl(tmp_path, [ROWS[0], row])], "x.jsonl:2: ", message)


def test_bad_rows_are_left_out_on_request(tmp_path, caplog):
    lines = [json.dumps(ROWS[0]), "{", json.dumps(BAD["lines"][0]), json.dumps(ROWS[2])]
    documents = read("jsonl", [write(tmp_path, "x.jsonl", "\n".join(lines))], Reading("en", "de", True))
    assert text(documents) == [TEXT[0], TEXT[2]] and "x.jsonl: 2 documents left out; the first: " in caplog.text


def test_lines_without_visible_characters_end_paragraphs(tmp_path):
    rows = [{"en": "a\n\u200b\nb", "de": "A\n\nB"}, {"en": ["a", "\u3164", "b"], "de": ["A", "", "B"]}]
    assert text(read("jsonl", [jsonl(tmp_path, rows)])) == [[[("a", "A")], [("b", "B")]]] * 2
