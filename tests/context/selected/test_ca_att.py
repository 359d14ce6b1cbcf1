"""CA-ATT as a context mechanism, against loops from its equation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.batch.layout import TargetsToSentences
from docnmt_fairseq.context.selected.ca_att import CAAttention
from docnmt_fairseq.layers.capture import Weights, capture
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig
from tests.reference.attention import sentences_of, words_of
from tests.reference.combination import nothing, source_attention
from tests.reference.memory import following, previous
from tests.support.comparison import PRECISIONS, assert_same
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism

WIDTH, SOURCE_WIDTH = 6, 4


def build(dtype=torch.float64, **options):
    torch.manual_seed(0)
    mechanism = build_mechanism(CAAttention, embed_dim=WIDTH, heads=2, head_dim=3, **options).to(dtype)
    for parameter in mechanism.parameters():  # no parameter is zero
        parameter.data.normal_(0, 0.5)
    return mechanism


def states(items, width, dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(items, width, dtype=dtype, generator=generator).requires_grad_()


@PRECISIONS
@settings(max_examples=8)
@given(layout=layouts(), contexts=st.integers(1, 3), selection=st.sampled_from(["previous", "next"]))
def test_encoder_equals_the_equation(dtype, tolerance, layout, contexts, selection):
    mechanism = build(dtype, context_sentences=contexts, context_selection=selection)
    attend, x = mechanism.attention.attentions[0], states(layout.tokens.total, WIDTH, dtype)
    choose, outputs = {"previous": previous, "next": following}[selection], []
    for row in range(layout.tokens.rows):
        context = [x[token] for sentence in choose(layout, row, contexts) for token in words_of(layout, sentence)]
        for token in words_of(layout, row):
            outputs.append(source_attention(attend, x[token], context)[0] if context else nothing(x[token], WIDTH))
    assert_same(mechanism(x, layout), torch.stack(outputs), [x, *mechanism.parameters()], tolerance)


@PRECISIONS
@settings(max_examples=8)
@given(layout=layouts(), data=st.data())
def test_decoder_equals_the_equation(dtype, tolerance, layout, data):
    rows = layout.tokens.rows
    lengths = np.array(data.draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows)))
    layout = make_layout(layout.tokens.lengths, layout.sentences.lengths, target_lengths=lengths)
    mechanism = build(dtype, source_dim=SOURCE_WIDTH, source_heads=2)
    source = states(layout.tokens.total, SOURCE_WIDTH, dtype)
    x = states(layout.targets.total, WIDTH, dtype, seed=2)
    encodings, outputs = mechanism.sentence_encoder(source, layout.tokens), []
    for token, row in enumerate(layout.targets.item_row.tolist()):
        document = int(layout.sentences.item_row[row])
        seen = [encodings[sentence] for sentence in sentences_of(layout, document)]
        outputs.append(source_attention(mechanism.attention.attentions[0], x[token], seen)[0])
    fast = mechanism.attend(x, mechanism.project(source, layout), layout.plan(TargetsToSentences()))
    assert_same(fast, torch.stack(outputs), [x, source, *mechanism.parameters()], tolerance)


def test_captured_weights_are_shares_of_context_dependence():
    layout, mechanism = make_layout([2, 3, 1, 2], [3, 1]), build(context_sentences=2)
    x, score = states(8, WIDTH), mechanism.attention.attentions[0].score
    with capture() as captured:
        mechanism(x, layout)
    (evidence,) = (e for e in captured.of(mechanism) if isinstance(e, Weights))
    for token, seen in ((3, [0, 1]), (5, [0, 1, 2, 3, 4]), (0, []), (7, [])):
        sensitivity = torch.zeros(8, dtype=torch.float64)
        for other in seen:
            sensitivity[other] = 1 - torch.sigmoid(score.keys[0](x[other]) + score.query(x[token]))
        expected = sensitivity / sensitivity.sum() if seen else sensitivity
        torch.testing.assert_close(evidence.weights[token, :, 0], expected)


@pytest.mark.parametrize(("name", "score"), [("flat", "ca-att"), ("hierarchical", "ca-att-luong")])
def test_recurrence_over_many_states_has_gradients_at_initialisation(name, score):
    torch.manual_seed(1)
    config = CombinationConfig(64, (64, 64), 64, combination_attention=score, score_dim=64)
    combination, cell = ATTENTION_COMBINATIONS[name](config), torch.nn.GRUCell(64, 64)
    states = [torch.randn(1, n, 64).tanh() for n in (30, 90)]
    projected, paddings = (
        combination.project_sources(states),
        [torch.zeros(1, s.size(1), dtype=torch.bool) for s in states],
    )
    first = (0.1 * torch.randn(1, 64)).requires_grad_()
    h = first
    for _ in range(60):
        context, _ = combination(h[None], projected, paddings)
        h = cell(context[0], h)
    (gradient,) = torch.autograd.grad(h.square().sum(), first)
    assert gradient.norm() < 1e3
