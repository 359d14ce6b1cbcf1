"""Selections of context sentences against loops over the document."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.batch.context_sentences import ContextSentences
from docnmt_fairseq.context.selected.base import zero_of
from tests.reference import memory as reference
from tests.support.documents import layouts, make_layout


def chosen(layout, contexts, selection, seed=1):
    """Returns the context sentences of every row."""
    found = layout.plan(ContextSentences(contexts, selection, seed))
    return [part.tolist() for part in np.split(found.sentences, found.first[1:])]


@settings(max_examples=30)
@given(layouts(), st.integers(1, 6))
def test_previous_and_next_sentences(layout, contexts):
    rows = range(layout.tokens.rows)
    assert chosen(layout, contexts, "previous") == [reference.previous(layout, row, contexts) for row in rows]
    assert chosen(layout, contexts, "next") == [reference.following(layout, row, contexts) for row in rows]


@settings(max_examples=30)
@given(layouts(), st.integers(1, 6))
def test_random_sentences_are_other_sentences_of_the_document(layout, contexts):
    for row, sentences in enumerate(chosen(layout, contexts, "random")):
        others = set(reference.document_of(layout, row)) - {row}
        assert set(sentences) <= others and sentences == sorted(set(sentences))
        assert len(sentences) == min(contexts, len(others))


@settings(max_examples=30)
@given(layouts(max_documents=4), st.integers(1, 6))
def test_random_choice_does_not_depend_on_the_batch(layout, contexts):
    in_batch = chosen(layout, contexts, "random")
    for start, lengths in zip(
        layout.sentences.offsets, np.split(layout.tokens.lengths, layout.sentences.offsets[1:-1])
    ):
        alone = chosen(make_layout(lengths, [len(lengths)]), contexts, "random")
        assert [[int(start) + s for s in sentences] for sentences in alone] == in_batch[start : start + len(lengths)]


def test_random_choice_per_epoch():
    def at(epoch, selection="random-each-epoch"):
        layout = replace(make_layout([3] * 20, [12, 8]), epoch=epoch)
        found = chosen(layout, 2, selection)
        for row, sentences in enumerate(found):
            assert len(sentences) == 2 and set(sentences) <= set(reference.document_of(layout, row)) - {row}
        return found

    assert at(1) == at(1) != at(2) != at(0)
    assert at(1, "random") == at(2, "random")


@st.composite
def with_similar(draw, columns=4):
    """Batches with any table of similar sentences, including distances beyond the start of the document."""
    layout = draw(layouts())
    places = layout.tokens.rows * columns
    back = np.array(draw(st.lists(st.integers(0, 6), min_size=places, max_size=places))).reshape(-1, columns)
    back = np.array([[b if b not in row[:k] else 0 for k, b in enumerate(row)] for row in back.tolist()])
    return make_layout(layout.tokens.lengths, layout.sentences.lengths, similar=back.astype(np.int16))


@settings(max_examples=60)
@given(with_similar(), st.integers(1, 4))
def test_similar_sentences_are_of_the_document_and_in_order(layout, contexts):
    for row, sentences in enumerate(chosen(layout, contexts, "similar")):
        document = reference.document_of(layout, row)
        available = [row - back for back in layout.similar[row].tolist() if back and row - back in document]
        assert sentences == sorted(available[:contexts])


def test_training_sentences_may_be_any_rows():
    layout = make_layout([2, 3, 1, 4], [2, 1, 1], drawn=np.array([[3, 2], [2, 3], [-1, -1], [2, -1]]))
    assert chosen(layout, 2, "training-set") == [[3, 2], [2, 3], [], [2]]
    assert chosen(layout, 1, "training-set") == [[3], [2], [], [2]]
    assert layout.without_context().drawn is None and layout.to("meta").drawn is layout.drawn


@pytest.mark.parametrize("selection", ["previous", "next", "random", "similar", "training-set"])
def test_document_of_one_sentence_has_no_context(selection):
    layout = make_layout([2, 3], [1, 1])
    assert chosen(layout, 2, selection) == [[], []]
    assert not layout.plan(ContextSentences(2, selection)).has_context.any()


def test_unused_parameters_have_zero_gradients():
    module = torch.nn.Linear(3, 2, dtype=torch.float16)
    module.weight.data.fill_(6e4)  # their sum is infinite
    zero = zero_of(module)
    zero.backward()
    assert zero == 0 and all((parameter.grad == 0).all() for parameter in module.parameters())
