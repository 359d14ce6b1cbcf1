"""Plain text with a sentence per line, and running text."""

import io

import pytest

from docnmt_fairseq.translate.formats import FORMATS, Reading
from tests.support.texts import WAYS, through

TEXT = "  It was late. Dr. Ward went\nhome, and slept.\n\n\nThe next day\ncame. Late.\n\n* * *\n\nEnd"


@pytest.mark.parametrize("split", ["lines", "paragraphs"])
@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT + "\n", "", "\n", "\ufeffA b.\n"])
def test_unchanged_text_gives_the_same_bytes(text, split):
    assert through("running", text, WAYS["same"], split=split)[0] == text.encode()
    assert through("running", text, split=split)[0].decode() == text.upper()


def test_paragraphs():
    _, (lines,) = through("running", TEXT)
    assert lines == [
        "It was late.", "Dr. Ward went home, and slept.", "<p>", "The next day came.", "Late.", "<p>", "End"
    ]  # fmt: skip
    _, (lines,) = through("running", TEXT, split="lines")
    assert lines == [
        *("It was late.", "Dr. Ward went", "<p>", "home, and slept.", "<p>"),
        *("The next day", "<p>", "came.", "Late.", "<p>", "End"),
    ]


def test_sentence_splitting_by_language():
    for language in ("de", "de-AT", "DE_ch"):
        _, (lines,) = through(
            "running", "Das war z. B. am 5. Mai. Gut.", languages=lambda language=language: (language, "en")
        )
        assert lines == ["Das war z. B. am 5. Mai.", "Gut."]
    _, (lines,) = through("running", "Es war so. Gut.", languages=lambda: ("unknown", "en"))
    assert lines == ["Es war so.", "Gut."]


def test_documents_of_lines(caplog):
    text = "one\n<p>\ntwo\n\n\nthree\n\u200b\nfour\n"
    found, documents = through("text", text)
    assert found.decode() == "ONE\n<p>\nTWO\n\n\nTHREE\n\nFOUR\n"
    assert documents == [["one", "<p>", "two", "", ""], ["three", ""], ["four"]]
    assert len(through("text", text, empty_lines="paragraph")[1]) == 1
    assert caplog.text.count("x.text:7: has no visible characters") == 2  # once a reading
    reader = FORMATS["text"](Reading())
    for _ in range(2):
        list(reader.documents(io.BytesIO(text.encode()), "y"))
    assert caplog.text.count("y:7: has no") == 1


def test_lines_without_letters_stay():
    page = "One.\n* * *\n1984\n{\n<p>\nTwo 2.\n\n---\n"
    found, documents = through("text", page, lambda line: "x")
    assert found.decode() == "x\n* * *\n1984\n{\n<p>\nx\n\n---\n"
    assert [line for document in documents for line in document] == page.splitlines()
