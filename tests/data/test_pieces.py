from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.data.pieces import PieceLimits, cut

corpora = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=25), min_size=1, max_size=6)


def flatten(corpus):
    return np.cumsum([0] + [len(document) for document in corpus]), np.concatenate(corpus)


@given(corpora, st.integers(0, 8), st.integers(0, 60), st.integers(0, 3), st.integers(0, 3))
def test_no_sentence_is_lost_and_limits_hold(corpus, max_sentences, max_tokens, before, after):
    documents, tokens = flatten(corpus)
    pieces = cut(documents, tokens, PieceLimits(max_sentences, max_tokens, before, after))
    covered = np.concatenate([np.arange(a, b) for a, b in zip(pieces.start, pieces.end)])
    assert covered.tolist() == list(range(len(tokens)))
    for number in range(len(pieces)):
        start, end, document = pieces.start[number], pieces.end[number], pieces.document[number]
        first, last = documents[document], documents[document + 1]
        assert first <= start < end <= last
        assert pieces.context_start[number] == max(first, start - before)
        assert pieces.context_end[number] == min(last, end + after)
        assert not max_sentences or end - start <= max_sentences
        assert not max_tokens or tokens[start:end].sum() <= max_tokens or end - start == 1


def test_documents_that_fit_stay_whole():
    documents, tokens = flatten([[5] * 4, [5] * 4])
    assert cut(documents, tokens, PieceLimits(4, 20)).start.tolist() == [0, 4]


def test_long_documents_are_cut_evenly():
    documents, tokens = flatten([[1] * 9])
    pieces = cut(documents, tokens, PieceLimits(8, 0))
    assert (pieces.end - pieces.start).tolist() == [5, 4]


def test_pieces_are_even_in_weights_within_the_limits():
    documents, tokens = flatten([[1] * 12])
    weights = np.array([1] * 6 + [5] * 6)
    assert cut(documents, tokens, PieceLimits(9, 0), weights).start.tolist() == [0, 9]  # 21 and 15 of 36
    assert cut(documents, tokens, PieceLimits(8, 0), weights).start.tolist() == [0, 6]  # 9 would be too many


def test_token_limits_leave_no_small_rest():
    documents, tokens = flatten([[33] * 127])
    pieces = cut(documents, tokens, PieceLimits(128, 4096))
    assert len(pieces) == 2 and abs((pieces.end - pieces.start)[0] - 63.5) < 2
    documents, tokens = flatten([[5, 5, 5, 1, 1, 1]])
    assert len(cut(documents, tokens, PieceLimits(4, 10))) == 2


@given(corpora, st.integers(1, 8), st.integers(1, 60))
def test_no_cut_needs_fewer_pieces(corpus, max_sentences, max_tokens):
    documents, tokens = flatten(corpus)
    fewest = 0
    for first, last in pairwise(documents):
        while first < last:
            size = 1
            while first + size < last and size < max_sentences and tokens[first : first + size + 1].sum() <= max_tokens:
                size += 1
            first, fewest = first + size, fewest + 1
    assert len(cut(documents, tokens, PieceLimits(max_sentences, max_tokens))) == fewest
