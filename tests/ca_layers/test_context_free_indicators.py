"""Recorded χ of CA-ATT and CA-RNN."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.context.selected.ca_att import CAAttention
from docnmt_fairseq.layers.capture import ContextFreeIndicator, capture
from docnmt_fairseq.multisource.base import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.recurrent.ca_rnn import ContextAwareRNN
from docnmt_fairseq.recurrent.cells import StepOrder
from tests.support.comparison import stirred
from tests.support.documents import layouts, make_layout
from tests.support.mechanisms import build_mechanism
from tests.support.sources import Seen, combine_packed

WIDTH = 4
LENGTHS = (np.array([3, 0, 1, 5]), np.array([2, 0, 0, 1]))  # of the states of two sources
TARGETS = Ragged([2, 3, 1, 4])


def chi_of(recording, module):
    """Returns χ of a module that reported once."""
    (evidence,) = (e for e in recording.of(module) if isinstance(e, ContextFreeIndicator))
    return evidence.chi


def rows(tensor, lengths):
    return tensor.split(list(map(int, lengths)))


@pytest.mark.parametrize(
    ("name", "attention"), [("flat", "ca-att"), ("hierarchical", "ca-att-bahdanau"), ("parallel", "ca-att-luong")]
)
def test_chi_of_ca_att_is_the_mean_over_states(name, attention):
    config = CombinationConfig(WIDTH, (WIDTH, 3), WIDTH, attention, score_dim=5)
    combination = stirred(ATTENTION_COMBINATIONS[name](config))
    x = torch.randn(TARGETS.total, WIDTH).double()
    states = [torch.randn(int(n.sum()), width).double() for n, width in zip(LENGTHS, config.source_dims)]
    with capture(ContextFreeIndicator) as recording:
        combine_packed(combination, x, TARGETS, [Seen(*source) for source in zip(states, LENGTHS)])
    flat = name == "flat"
    readers = [combination.state_sum] if flat else [attention.state_sum for attention in combination.attentions]
    assert {owner for owner, _ in recording.entries} == set(readers)
    for reader, sources in zip(readers, [(0, 1)] if flat else [(0,), (1,)]):
        expected = []
        for sentence, queries in enumerate(rows(x, TARGETS.lengths)):
            chi = []  # [tokens, states] of each source
            for source in sources:
                score = combination.score if flat else combination.attentions[source].score
                seen = rows(states[source], LENGTHS[source])[sentence]
                chi.append(score(queries[None], score.key(seen, source if flat else 0)[None])[0, 0].sigmoid())
            expected.append(torch.cat(chi, dim=1).mean(1))  # NaN of no states
        found = chi_of(recording, reader)
        torch.testing.assert_close(found, torch.cat(expected), atol=1e-9, rtol=0, equal_nan=True)
        assert found.isnan().any()


@given(layouts())
@settings(max_examples=20)
def test_tokens_without_context_have_no_chi(layout):
    mechanism = stirred(build_mechanism(CAAttention, embed_dim=WIDTH, heads=2, head_dim=2))
    x = torch.randn(layout.tokens.total, WIDTH).double()
    with capture(ContextFreeIndicator) as recording:
        mechanism(x, layout)
    reader, has_context = mechanism.attention.attentions[0].state_sum, mechanism.select(layout).has_context
    if not has_context.any():
        assert not recording.entries
        return
    chi = chi_of(recording, reader)
    assert torch.equal(~chi.isnan(), has_context)
    whole = make_layout(layout.tokens.lengths, layout.sentences.lengths)
    for document, sentences in enumerate(layout.sentences.lengths):  # as if it were alone
        first = int(layout.sentences.offsets[document])
        tokens = slice(int(whole.tokens.offsets[first]), int(whole.tokens.offsets[first + sentences]))
        with capture(ContextFreeIndicator) as alone:
            mechanism(x[tokens], make_layout(layout.tokens.lengths[first : first + sentences], [sentences]))
        if alone.entries:
            torch.testing.assert_close(chi_of(alone, reader), chi[tokens], equal_nan=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_chi_of_ca_rnn(reverse):
    cell, tokens = stirred(ContextAwareRNN(3, WIDTH)), Ragged([2, 5, 1, 3])
    x = torch.randn(tokens.total, 3).double()
    with capture(ContextFreeIndicator) as whole:
        cell.sequence(x, StepOrder(tokens, reverse=reverse))
    expected = []
    for row in rows(x, tokens.lengths):
        state, gates = cell.initial(1, x), []
        for item in row.flip(0) if reverse else row:
            with capture(ContextFreeIndicator) as step:
                state = cell.step(item[None], state)
            gates.append(chi_of(step, cell))
        expected.append(torch.cat(gates[::-1] if reverse else gates))
    torch.testing.assert_close(chi_of(whole, cell), torch.cat(expected), atol=1e-12, rtol=0)
