"""Document layouts, packed rows and their plans."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from docnmt_fairseq.batch.layout import WithinSentences, WithinTargets
from docnmt_fairseq.batch.ragged import AttentionPlan, Ragged
from docnmt_fairseq.batch.sources import OfExtraSource, OfSentence, Padded
from docnmt_fairseq.multisource.packed import TargetsToAllSources
from tests.support.documents import layouts, make_layout

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=12).map(np.array)


@given(lengths)
def test_pad_and_pack_are_inverse(row_lengths):
    rows = Ragged(row_lengths)
    packed = torch.arange(rows.total * 2.0).view(-1, 2)
    padded = rows.pad(packed, value=-1.0)
    assert padded.shape == (len(row_lengths), row_lengths.max(), 2)
    assert torch.equal(rows.pack(padded), packed)
    assert torch.equal(padded[..., 0] == -1, rows.padding_mask())


@given(lengths)
def test_sum_and_softmax_stay_within_rows(row_lengths):
    rows = Ragged(row_lengths)
    x = torch.randn(rows.total, 3, generator=torch.Generator().manual_seed(0))
    pieces = x.split(row_lengths.tolist())
    torch.testing.assert_close(rows.sum(x), torch.stack([piece.sum(0) for piece in pieces]))
    torch.testing.assert_close(rows.softmax(x), torch.cat([piece.softmax(0) for piece in pieces]))


@given(layouts(), st.data())
def test_plan_gathers_the_results_of_its_blocks(layout, data):
    rows = data.draw(st.sets(st.integers(0, layout.sentences.rows - 1), min_size=1))
    plan = AttentionPlan(layout.document_tokens, layout.sentences, rows=np.array(sorted(rows)))
    expected = [i for i, document in enumerate(layout.token_document.tolist()) if document in rows]
    assert plan.items.tolist() == expected
    assert plan.gather([block.query.float() for block in plan.blocks]).tolist() == expected


def test_context_only_rows_are_encoded_but_not_decoded():
    layout = make_layout([2, 1, 3], [3], decoded=np.array([0, 2]), context_tokens=torch.tensor([9]))
    src_tokens = torch.tensor([[1, 2, 0], [3, 4, 5]])
    assert layout.pack_tokens(src_tokens).tolist() == [1, 2, 9, 3, 4, 5]
    assert layout.keep_decoded(torch.arange(6)).tolist() == [0, 1, 3, 4, 5]
    assert layout.decoded_tokens.lengths.tolist() == [2, 3]


def test_new_targets_keep_plans_of_the_source():
    layout = make_layout([2, 3], [2], target_lengths=np.array([1, 4]))
    layout.with_plans([WithinSentences(), WithinTargets()])
    assert layout.with_targets(np.array([1, 4])) is layout
    other = layout.with_targets(np.array([4, 3]))
    assert other.targets.lengths.tolist() == [4, 3]
    assert other.plan(WithinTargets()).items.tolist() == list(range(7))
    assert other.plan(WithinSentences()) is layout.plan(WithinSentences())


def test_new_extra_sources_keep_other_plans():
    layout = make_layout([2, 3], [2], extra_lengths=(np.array([1, 2]), np.array([0, 1])))
    extra = OfExtraSource(1)
    layout.with_plans([WithinSentences(), extra, Padded(extra)])
    assert layout.with_extra_lengths(layout.extra_lengths) is layout
    other = layout.with_extra_lengths((np.array([1, 2]), np.array([5, 4])))
    assert other.plan(extra).lengths.tolist() == other.extra_lengths[1].tolist() == [5, 4]
    assert other.plan(Padded(extra)).padding.shape == (2, 5)
    assert Padded(extra).of_extra_sources and not Padded(OfSentence()).of_extra_sources
    assert TargetsToAllSources((OfSentence(), extra)).of_extra_sources
    assert other.plan(WithinSentences()) is layout.plan(WithinSentences())
