import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.data.batching import pack_batches


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=40),
    st.one_of(st.none(), st.integers(1, 100)),
    st.one_of(st.none(), st.integers(1, 9)),
    st.randoms(use_true_random=False),
)
def test_every_piece_is_in_exactly_one_batch_and_limits_hold(costs, max_tokens, max_pieces, random):
    costs, order = np.array(costs), list(range(len(costs)))
    random.shuffle(order)
    batches = pack_batches(np.array(order), costs, max_tokens, max_pieces)
    assert np.concatenate(batches).tolist() == order
    for batch in batches:
        assert not max_pieces or len(batch) <= max_pieces
        assert not max_tokens or len(batch) == 1 or (costs[batch].sum(axis=0) <= max_tokens).all()


def test_a_batch_may_have_exactly_the_limit_and_no_column_more():
    costs = np.array([[5, 1], [5, 1], [4, 9], [6, 1], [1, 1]])
    assert [batch.tolist() for batch in pack_batches(np.arange(5), costs, 10, None)] == [[0, 1], [2, 3], [4]]


def test_too_long_documents_are_told_once(caplog):
    pack_batches(np.arange(3), np.array([[5], [50], [60]]), 10, None)
    assert "2 documents cost more than --max-tokens 10" in caplog.text
