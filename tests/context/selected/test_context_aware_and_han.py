"""Mechanisms ``context-aware`` and ``han`` against loop references."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from tests.reference import memory as reference
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

REFERENCES = {"context-aware": reference.context_aware, "han": reference.hierarchical_attention}
every_mechanism = pytest.mark.parametrize("name", REFERENCES)


def build(name, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return build_mechanism(name, embed_dim=6, heads=2, head_dim=3, ffn_dim=5, **options).to(dtype)


@PRECISIONS
@every_mechanism
@pytest.mark.parametrize(
    "options", [{"context_sentences": 2}, {"context_sentences": 4, "context_selection": "random"}], ids=str
)
@settings(max_examples=5)
@given(layout=layouts(max_sentences=4, max_words=4))
def test_equals_loop_reference(name, options, dtype, tolerance, layout):
    mechanism = build(name, dtype, **options)
    x = torch.randn(layout.tokens.total, 6, dtype=dtype, requires_grad=True)
    selected = mechanism.select(layout)
    contexts = [part.tolist() for part in np.split(selected.sentences, selected.first[1:])]
    slow, fast = REFERENCES[name](mechanism, x, layout, contexts), mechanism(x, layout)
    assert (
        mechanism.has_context(layout).tolist() == np.repeat([bool(c) for c in contexts], layout.tokens.lengths).tolist()
    )
    if any(contexts):
        assert_same(fast, slow, [x, *mechanism.parameters()], tolerance)
    else:
        assert torch.equal(fast, slow)


@every_mechanism
def test_batch_without_context_has_zero_gradients(name):
    layout = make_layout([3, 1], [1, 1])
    mechanism, x = build(name), torch.randn(4, 6, dtype=torch.double)
    out = mechanism(x, layout)
    out.sum().backward()
    assert (out == 0).all() and not mechanism.has_context(layout).any()
    assert all((parameter.grad == 0).all() for parameter in mechanism.parameters())
