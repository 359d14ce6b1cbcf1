"""Chunks of documents and batches of chunks."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.data.chunking import ChunkLimits, chunk_documents, pack_batches

corpora = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=25), min_size=1, max_size=6)


def flatten(corpus):
    return np.cumsum([0] + [len(document) for document in corpus]), np.concatenate(corpus)


@given(corpora, st.integers(0, 8), st.integers(0, 60), st.integers(0, 3), st.integers(0, 3))
def test_no_sentence_is_lost_and_limits_hold(corpus, max_sentences, max_tokens, before, after):
    documents, tokens = flatten(corpus)
    chunks = chunk_documents(documents, tokens, ChunkLimits(max_sentences, max_tokens, before, after))
    covered = np.concatenate([np.arange(a, b) for a, b in zip(chunks.start, chunks.end)])
    assert covered.tolist() == list(range(len(tokens)))
    for number in range(len(chunks)):
        start, end, document = chunks.start[number], chunks.end[number], chunks.document[number]
        first, last = documents[document], documents[document + 1]
        assert first <= start < end <= last
        assert chunks.context_start[number] == max(first, start - before)
        assert chunks.context_end[number] == min(last, end + after)
        assert not max_sentences or end - start <= max_sentences
        assert not max_tokens or tokens[start:end].sum() <= max_tokens or end - start == 1


def test_chunks_are_even_in_weights_within_the_limits():
    documents, tokens = flatten([[1] * 12])
    weights = np.array([1] * 6 + [5] * 6)
    assert chunk_documents(documents, tokens, ChunkLimits(9, 0), weights).start.tolist() == [0, 9]  # 21 and 15 of 36
    assert chunk_documents(documents, tokens, ChunkLimits(8, 0), weights).start.tolist() == [0, 6]


@given(corpora, st.integers(1, 8), st.integers(1, 60))
def test_the_number_of_chunks_is_minimal(corpus, max_sentences, max_tokens):
    documents, tokens = flatten(corpus)
    fewest = 0
    for first, last in pairwise(documents):
        while first < last:
            size = 1
            while first + size < last and size < max_sentences and tokens[first : first + size + 1].sum() <= max_tokens:
                size += 1
            first, fewest = first + size, fewest + 1
    assert len(chunk_documents(documents, tokens, ChunkLimits(max_sentences, max_tokens))) == fewest


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=40),
    st.one_of(st.none(), st.integers(1, 100)),
    st.one_of(st.none(), st.integers(1, 9)),
    st.randoms(use_true_random=False),
)
def test_every_chunk_is_in_exactly_one_batch_and_limits_hold(costs, max_tokens, max_chunks, random):
    costs, order = np.array(costs), list(range(len(costs)))
    random.shuffle(order)
    batches = pack_batches(np.array(order), costs, max_tokens, max_chunks)
    assert np.concatenate(batches).tolist() == order
    for batch in batches:
        assert not max_chunks or len(batch) <= max_chunks
        assert not max_tokens or len(batch) == 1 or (costs[batch].sum(axis=0) <= max_tokens).all()
