"""Shuffled context: no sentence is shown in or with its own document, and every translation is put back."""

import numpy as np
import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.translate.shuffled_context import ShuffledContext, document_numbers, shuffled_order
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.texts import Plain


class Remembering(Plain):
    """Stub that remembers the documents."""

    def translate(self, documents, names, empty_lines, progress):
        self.documents = documents
        return [[line.upper() for line in lines] for lines in documents]


def text_of(documents, sentences):
    """Returns a text whose sentences have the names of their documents."""
    lines = []
    for document in range(documents):
        own = [f"d{document} s{sentence}" for sentence in range(sentences)]
        lines += [*own[:2], "<p>", *own[2:], ""]
    return lines


@pytest.mark.parametrize("empty_lines", ["document", "paragraph"])
def test_sentences_are_shown_in_other_documents(empty_lines):
    texts = [text_of(8, 5), text_of(4, 3)] if empty_lines == "document" else [text_of(1, 5)[:-1] for _ in range(12)]
    texts = [[f"t{number} {line}" if line not in ("", "<p>") else line for line in t] for number, t in enumerate(texts)]
    translator = Remembering()
    found = ShuffledContext(translator, seed=3).translate_lines(texts, [], empty_lines, print)
    assert [[line.text for line in lines] for lines in found] == [[line.upper() for line in lines] for lines in texts]
    owners = document_numbers(texts, empty_lines)
    owner_of = dict(zip((line for lines in texts for line in lines if line not in ("", "<p>")), owners))
    shown = {}
    sentences = [line for lines in translator.documents for line in lines if line not in ("", "<p>")]
    for place, line in zip(owners, sentences):
        shown.setdefault(place, []).append(owner_of[line])
    assert all(len(set(own)) == len(own) and place not in own for place, own in shown.items())
    marks = [[i for i, line in enumerate(lines) if line in ("", "<p>")] for lines in texts]
    assert marks == [[i for i, line in enumerate(t) if line in ("", "<p>")] for t in translator.documents]


def test_order_depends_on_the_seed():
    owners = np.repeat(np.arange(20), 6)
    one, same, other = (shuffled_order(owners, seed) for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()
    assert sorted(one) == list(range(120))
    assert sorted(shuffled_order(np.repeat([0, 1], [9, 3]), 1)) == list(range(12)), "impossible without a conflict"


def test_a_single_document_is_reported(caplog):
    translator = ShuffledContext(Remembering())
    translator.translate_lines([text_of(1, 4)], [], "document", print)
    assert "4 of 4 sentences" in caplog.text
    assert translator.translate_lines([[""]], [], "document", print)[0][0].text == ""


def test_command(data_bin, tmp_path, prepared, monkeypatch):
    path = toy.train(data_bin, tmp_path / "model", "--context-attention", "none", "--max-update", "2")
    text = "a b c\nd\n\ne e a\nb\n\nc d\na b\n\nd e a\nc c\n"
    (tmp_path / "in").write_text(text)

    def translate(*extra):
        command = ["translate", "--path", str(path), "--data", str(prepared), "--input", str(tmp_path / "in"), "--cpu"]
        assert cli.main([*command, "--output", str(tmp_path / "out"), "--force", "--max-len-b", "5", *extra]) == 0
        return (tmp_path / "out").read_text()

    assert translate() == translate("--context", "shuffled", "--seed", "2"), "a model without context"
    shown = Remembering()
    monkeypatch.setattr(
        DocumentTranslator, "translate_lines", lambda self, *arguments: shown.translate_lines(*arguments)
    )
    assert translate("--context", "shuffled") == text.upper()
    first = shown.documents
    assert translate("--context", "shuffled", "--seed", "2") == text.upper()
    assert [text.splitlines()] != first != shown.documents
    assert sorted(shown.documents[0]) == sorted(text.splitlines())
