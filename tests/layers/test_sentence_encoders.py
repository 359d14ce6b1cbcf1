"""Sentence encoders."""

import pytest
import torch
from hypothesis import given, settings

import docnmt_fairseq.context  # noqa: F401  (registers all)
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS
from tests.reference import attention as reference
from tests.reference import context_aware_layers as context_aware
from tests.reference import memory
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.documents import layouts, make_layout


def bags_of_states(e, x, layout):
    sentences = x.split(layout.tokens.lengths.tolist())
    return torch.stack([context_aware.bag(w, e.for_chi(w), e.theta, e.v_0, [False] * len(w)) for w in sentences])


def mean_of_convolved(e, x, layout):
    return reference.mean_of_words(context_aware.convolved_words(x, layout.tokens, e), layout)


def last_states(e, x, layout):
    return torch.stack([memory.gru(e.rnn, sentence)[-1] for sentence in x.split(layout.tokens.lengths.tolist())])


REFERENCES = {
    "source2token": lambda e, x, layout: reference.source2token(x, layout, e.query, e.k_proj, e.v_proj, e.out_proj),
    "multi-dim-source2token": lambda e, x, layout: reference.multi_dim_source2token(x, layout, e.hidden, e.score),
    "mean": lambda e, x, layout: reference.mean_of_words(x, layout),
    "ca-cnn": mean_of_convolved,
    "ca-bsfe": bags_of_states,
    "rnn": last_states,
}
every_encoder = pytest.mark.parametrize("name", SENTENCE_ENCODERS.names())


def build(name, width=6):
    torch.manual_seed(0)
    return SENTENCE_ENCODERS[name](width, 2)


@every_encoder
@PRECISIONS
@settings(max_examples=10)
@given(layout=layouts())
def test_encoder_equals_its_equation(name, dtype, tolerance, layout):
    encoder = build(name).to(dtype)
    x = torch.randn(layout.tokens.total, 6, dtype=dtype, requires_grad=True)
    fast, slow = encoder(x, layout.tokens), REFERENCES[name](encoder, x, layout)
    assert_same(fast, slow, [x, *encoder.parameters()], tolerance)


@every_encoder
def test_sentences_are_encoded_independently(name):
    layout = make_layout([3, 1, 2], [3])
    x = torch.randn(6, 8)
    changed = x.clone()
    changed[3:] += 1
    encoder = build(name, width=8)
    before, after = encoder(x, layout.tokens), encoder(changed, layout.tokens)
    assert before.shape == (3, 8)
    torch.testing.assert_close(before[0], after[0])
    assert not torch.allclose(before[1:], after[1:])
