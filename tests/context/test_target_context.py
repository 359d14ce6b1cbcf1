"""Target-context mechanisms: incremental computation equals the full one."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.batch.layout import OfTargets
from docnmt_fairseq.context.base import TARGET_MECHANISMS
from docnmt_fairseq.models.encoder_outputs import PreviousTargets
from tests.support.comparison import PRECISIONS
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

every_mechanism = pytest.mark.parametrize("name", TARGET_MECHANISMS.names())


def build(name, dtype, contexts):
    torch.manual_seed(0)
    sizes = {"embed_dim": 6, "heads": 2, "head_dim": 3, "ffn_dim": 5}
    return build_mechanism(name, **sizes, context_sentences=contexts).to(dtype)


def previous_of(layout, parts, contexts):
    """Returns the entries of ``parts`` for the sentences before each sentence."""
    place = layout.sentence_position.tolist()
    return [list(parts[max(row - contexts, row - place[row]) : row]) for row in range(len(parts))]


@PRECISIONS
@every_mechanism
@settings(max_examples=10)
@given(layout=layouts(max_words=4), contexts=st.integers(1, 4))
def test_incremental_equals_full(name, dtype, tolerance, layout, contexts):
    mechanism = build(name, dtype, contexts)
    x = torch.randn(layout.tokens.total, 6, dtype=dtype)
    at_once, has_context = mechanism(x, layout), mechanism.has_context(layout)
    memories = mechanism.project_targets(x).split(layout.tokens.lengths.tolist())
    previous = previous_of(layout, memories, contexts)
    assert has_context.tolist() == np.repeat([bool(of_row) for of_row in previous], layout.tokens.lengths).tolist()
    if not any(previous):
        return
    before = PreviousTargets.of_sentences(previous)
    # a row's tokens as its hypotheses
    steps = mechanism.look_back(layout.tokens.pad(x), before.projected, before.padding)
    assert steps.isfinite().all()
    found = layout.tokens.pack(steps)[has_context]
    torch.testing.assert_close(found, at_once[has_context], atol=tolerance, rtol=tolerance)


def test_previous_targets_are_padded():
    one, two, three = (torch.full((length, 2), float(length)) for length in (1, 2, 3))
    before = PreviousTargets.of_sentences([[], [one], [three, two]])
    projected, padding = before.projected, before.padding
    assert projected.shape == (3, 2, 3, 2)
    assert (~padding).sum(-1).tolist() == [[0, 0], [1, 0], [3, 2]]
    assert (
        torch.equal(projected[2, 0], three)
        and torch.equal(projected[2, 1, :2], two)
        and torch.equal(projected[1, 0, :1], one)
    )
    assert (projected[padding] == 0).all()


def test_layout_of_target_sentences():
    layout = make_layout([1] * 7, [3, 2, 2], decoded=np.array([1, 2, 5, 6]), target_lengths=np.array([4, 1, 2, 3]))
    targets = layout.plan(OfTargets())
    assert targets.tokens.lengths.tolist() == [4, 1, 2, 3] and targets.sentences.lengths.tolist() == [2, 2]
    assert targets.sentence_position.tolist() == [0, 1, 0, 1]
    assert layout.plan(OfTargets()) is targets
    assert layout.with_targets(np.array([1, 1, 1, 5])).plan(OfTargets()).tokens.lengths.tolist() == [1, 1, 1, 5]
