"""Every sentence among sentences of other documents, and every translation back in its place."""

import logging

import numpy as np
import pytest

from docnmt_fairseq import cli
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.false_context import ShuffledContext, among_others, owners_of
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.texts import Plain


class Remembering(Plain):
    """Stands in for the translator."""

    def translate(self, documents, names, empty_lines, progress):
        self.documents = documents
        return [[line.upper() for line in lines] for lines in documents]


def made(documents, sentences):
    """Returns a text whose sentences bear the names of their documents."""
    lines = []
    for document in range(documents):
        own = [f"d{document} s{sentence}" for sentence in range(sentences)]
        lines += [*own[:2], "<p>", *own[2:], ""]
    return lines


@pytest.mark.parametrize("empty_lines", ["document", "paragraph"])
def test_every_translation_goes_back_and_none_saw_its_own_document(empty_lines):
    texts = [made(8, 5), made(4, 3)] if empty_lines == "document" else [made(1, 5)[:-1] for _ in range(12)]
    texts = [[f"t{number} {line}" if line not in ("", "<p>") else line for line in t] for number, t in enumerate(texts)]
    translator = Remembering()
    shown = ShuffledContext(translator, seed=3)
    found = shown.translate_lines(texts, [], empty_lines, print)
    assert [[line.text for line in of_text] for of_text in found] == [
        [line.upper() for line in lines] for lines in texts
    ]
    owners = owners_of(texts, empty_lines)
    owner_of = dict(zip((line for lines in texts for line in lines if line not in ("", "<p>")), owners))
    together = {}
    sentences = [line for lines in translator.documents for line in lines if line not in ("", "<p>")]
    for place, line in zip(owners, sentences):
        together.setdefault(place, []).append(owner_of[line])
    assert all(len(set(own)) == len(own) and place not in own for place, own in together.items())
    marks = [[i for i, line in enumerate(lines) if line in ("", "<p>")] for lines in texts]
    assert marks == [[i for i, line in enumerate(t) if line in ("", "<p>")] for t in translator.documents]


def test_seeds_give_places():
    owners = np.repeat(np.arange(20), 6)
    one, same, other = (among_others(owners, seed) for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()
    assert sorted(one) == list(range(120))


def test_where_a_document_is_too_long_for_the_others_that_is_said(caplog):
    owners = np.repeat([0, 1], [9, 3])
    logging.disable(logging.NOTSET)
    try:
        order = among_others(owners, 1)
    finally:
        logging.disable(logging.INFO)
    assert sorted(order) == list(range(12))
    assert "of 12 sentences stand beside one of their own document" in caplog.text


def test_one_document_has_no_others():
    with pytest.raises(InputError, match="one document"):
        ShuffledContext(Remembering()).translate_lines([made(1, 4)], [], "document", print)
    with pytest.raises(InputError, match="--seed -1"):
        ShuffledContext(Remembering(), seed=-1)


def test_the_command_shows_a_model_false_context(data_bin, tmp_path, prepared, monkeypatch):
    path = toy.train(data_bin, tmp_path / "model", "--context-attention", "none", "--max-update", "2")
    text = "a b c\nd\n\ne e a\nb\n\nc d\na b\n\nd e a\nc c\n"
    (tmp_path / "in").write_text(text)

    def translate(*extra):
        command = ["translate", "--path", str(path), "--data", str(prepared), "--input", str(tmp_path / "in"), "--cpu"]
        assert cli.main([*command, "--output", str(tmp_path / "out"), "--force", "--max-len-b", "5", *extra]) == 0
        return (tmp_path / "out").read_text()

    assert translate() == translate("--context", "shuffled", "--seed", "2")  # it sees no context at all
    shown = Remembering()
    monkeypatch.setattr(
        DocumentTranslator, "translate_lines", lambda self, *arguments: shown.translate_lines(*arguments)
    )
    assert translate("--context", "shuffled") == text.upper()
    first = shown.documents
    assert translate("--context", "shuffled", "--seed", "2") == text.upper()
    assert [text.splitlines()] != first != shown.documents
    assert sorted(shown.documents[0]) == sorted(text.splitlines())
