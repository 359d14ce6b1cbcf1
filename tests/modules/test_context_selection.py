import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.modules.context_selection import ContextSentences
from tests.conftest import layouts, make_layout
from tests.reference import memory as reference


def chosen(layout, contexts, selection, seed=1):
    """Returns the context sentences of every row."""
    found = ContextSentences.select(layout, contexts, selection, seed)
    return [part.tolist() for part in np.split(found.sentences, found.first[1:])]


@settings(max_examples=30)
@given(layouts(), st.integers(1, 6))
def test_previous_and_next_sentences_of_the_document(layout, contexts):
    rows = range(layout.words.rows)
    assert chosen(layout, contexts, "previous") == [reference.previous(layout, row, contexts) for row in rows]
    assert chosen(layout, contexts, "next") == [reference.following(layout, row, contexts) for row in rows]


@settings(max_examples=30)
@given(layouts(), st.integers(1, 6))
def test_random_sentences_are_others_of_the_document_in_order(layout, contexts):
    for row, sentences in enumerate(chosen(layout, contexts, "random")):
        others = set(reference.document_of(layout, row)) - {row}
        assert set(sentences) <= others and sentences == sorted(set(sentences))
        assert len(sentences) == min(contexts, len(others))


@settings(max_examples=30)
@given(layouts(max_documents=4), st.integers(1, 6))
def test_a_random_choice_does_not_depend_on_the_batch(layout, contexts):
    of_batch = chosen(layout, contexts, "random")
    for start, lengths in zip(layout.sentences.offsets, np.split(layout.words.lengths, layout.sentences.offsets[1:-1])):
        alone = chosen(make_layout(lengths, [len(lengths)]), contexts, "random")
        assert [[int(start) + s for s in sentences] for sentences in alone] == of_batch[start : start + len(lengths)]


def test_a_random_choice_depends_on_the_seed_and_on_the_document():
    one, other = make_layout([3] * 20, [20]), make_layout([3] * 19 + [4], [20])
    assert chosen(one, 1, "random") == chosen(make_layout([3] * 20, [20]), 1, "random")
    assert chosen(one, 1, "random", seed=2) != chosen(one, 1, "random", seed=1) != chosen(other, 1, "random", seed=1)


def test_every_other_sentence_can_be_chosen():
    seen = {
        (row, s)
        for seed in range(100)
        for row, sentences in enumerate(chosen(make_layout([2] * 4, [4]), 1, "random", seed))
        for s in sentences
    }
    assert seen == {(row, s) for row in range(4) for s in range(4) if s != row}


@pytest.mark.parametrize("selection", ["previous", "next", "random"])
def test_a_document_of_one_sentence_has_no_context(selection):
    layout = make_layout([2, 3], [1, 1])
    assert chosen(layout, 2, selection) == [[], []]
    assert not ContextSentences.select(layout, 2, selection).reached.any()
