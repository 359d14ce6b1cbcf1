"""Truecasing as truecase.perl does it, and its models."""

import pytest

from docnmt_fairseq.corpus.truecasing import detruecaser, train_truecaser, truecaser
from docnmt_fairseq.errors import InputError
from tests.support.documents import write_lines

LINES = ["The cat gave us milk .", "<p>", "In the US a cat drinks .", "We saw the us , the US .", "He told us .", ""]


@pytest.fixture
def model(tmp_path):
    write_lines(tmp_path / "text", LINES)
    train_truecaser(tmp_path / "text", tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("line", "cased"),
    [
        ("The cat saw us .", "the cat saw us ."),
        ("A cat of the US saw us .", "a cat of the US saw us ."),  # rarer than "us", but known within sentences
        ("A cat of Us", "a cat of us"),
        ("Nobody saw The cat .", "Nobody saw the cat ."),
    ],
)
def test_words_have_the_case_of_the_text(model, line, cased):
    assert truecaser(model)(line) == cased


def test_sentences_begin_with_a_capital_again():
    assert detruecaser()("the cat saw us .") == "The cat saw us ."


def test_other_files_are_named(tmp_path):
    with pytest.raises(InputError, match="nowhere: not a truecaser model"):
        truecaser(tmp_path / "nowhere")
