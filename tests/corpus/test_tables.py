"""Tab-separated text and News-Commentary."""

import gzip

import pytest

from docnmt_fairseq.corpus.readers import Reading
from tests.support.reading import EN_DE, read, refused, text, write

NAMED = "document\tscore\tde\ten\na\t.9\tA1\ta1\na\t.8\tA2\ta2\n\nb\t.7\tB\tb\n"


@pytest.mark.parametrize("columns", [("en", "de", "document"), ("4", "3", "1"), ("en", "3", "document")])
def test_document_column(tmp_path, columns):
    documents = read(
        "tsv", [write(tmp_path, "t.tsv", NAMED)], Reading("en", "de", options={"columns": columns, "header": True})
    )
    assert text(documents) == [[[("a1", "A1"), ("a2", "A2")]], [[("b", "B")]]]
    assert documents[1].lines == [[(5, 5)]]
    with_source_only = Reading("en", options={"columns": columns, "header": True})
    assert text(read("tsv", [tmp_path / "t.tsv"], with_source_only)) == [[[("a1",), ("a2",)]], [[("b",)]]]


def test_empty_rows_end_documents(tmp_path):
    table = '\t\na "b\tA "B\r\n\tonly\n\t\n\t \n\ufeff\t\u200b\n"b"\tB\n'
    documents = read("tsv", [write(tmp_path, "t.tsv.gz", gzip.compress(table.encode()))])
    assert text(documents) == [[[('a "b', 'A "B'), ("", "only")]], [[('"b"', "B")]]]
    assert documents[1].lines == [[(7, 7)]]


@pytest.mark.parametrize(
    ("content", "header", "line"),
    [
        ("a\tA\nb\tb\tB\nc\tC\n", False, 2),  # a tab in the text
        ("a\ta\tA\nb\tB\n", False, 2),
        ("en\tde\nb\tb\tB\n", True, 2),
        ("a\tA\t1\n\nb\tB\n", False, 3),
        ("a\tA\nb\n", False, 2),
    ],
)
def test_rows_with_another_number_of_columns(tmp_path, caplog, content, header, line):
    path, options = write(tmp_path, "t.tsv", content), {"header": header}
    refused(
        "tsv",
        [path],
        f"t.tsv:{line}",
        "columns, expected",
        "--on-empty drop",
        options=Reading("en", "de", False, options),
    )
    documents = read("tsv", [path], Reading("en", "de", True, options))
    assert sum(map(len, documents)) == content.count("\n") - 1 - header - content.count("\n\n")
    assert "1 rows left out" in caplog.text


@pytest.mark.parametrize(
    "content, columns, header, parts",
    [
        ("a\tA\tx\nb\tB\ty\nc\tC\tx\n", ("1", "2", "3"), False, ["t.tsv:3", "document x continues"]),
        ("en\tde\na\tA\n", ("en", "fr"), True, ["t.tsv:1", "no column fr", "en, de"]),
        ("a\tA\n", ("en", "de"), False, ["t.tsv:1", "no column en", "--header"]),
    ],
)
def test_bad_tables(tmp_path, content, columns, header, parts):
    options = Reading("en", "de", options={"columns": columns, "header": header})
    refused("tsv", [write(tmp_path, "t.tsv", content)], *parts, options=options)


def test_news_commentary_plain(tmp_path):
    files = [write(tmp_path, "nc.de-en.en", "a\nb\n\n\nc\n<p>\n"), write(tmp_path, "nc.de-en.de", "A\n\n\n\nC\nP\n")]
    documents = read("news-commentary", files)
    assert text(documents) == [[[("a", "A"), ("b", "")]], [[("c", "C"), ("<p>", "P")]]]
    assert documents == read("news-commentary", [tmp_path / "nc.de-en"])
    assert documents[1].lines == [[(5, 5), (6, 6)]]


def test_news_commentary_table(tmp_path):
    table = write(tmp_path, "news-commentary-v16.de-en.tsv", "A\ta\n\t\nB\tb\n")
    assert text(read("news-commentary", [table], EN_DE)) == [[[("a", "A")]], [[("b", "B")]]]
    assert text(read("news-commentary", [table], Reading("de", "en"))) == [[[("A", "a")]], [[("B", "b")]]]
    assert text(read("news-commentary", [table], Reading("en"))) == [[[("a",)]], [[("b",)]]]
    refused("news-commentary", [table], "languages en and fr", "--columns", options=Reading("en", "fr"))
    refused("news-commentary", [write(tmp_path, "nc.tsv", "")], "must contain the languages en and de")
    refused("news-commentary", [table, table], "format news-commentary takes PREFIX")
