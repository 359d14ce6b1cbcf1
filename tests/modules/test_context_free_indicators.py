"""What CA-ATT and CA-RNN report as χ of a word, whichever way they are computed."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from docnmt_fairseq.modules.attention_combination.contract import ATTENTION_COMBINATIONS, CombinationConfig
from docnmt_fairseq.modules.attention_combination.packed import combine_packed
from docnmt_fairseq.modules.ca_attention import CAAttention
from docnmt_fairseq.modules.context import ContextConfig
from docnmt_fairseq.modules.context_aware_layers.chi_gated import ReportsChi
from docnmt_fairseq.modules.recording import ContextFreeIndicator, record
from docnmt_fairseq.modules.recurrent.ca_rnn import ContextAwareRNN
from docnmt_fairseq.modules.recurrent.steps import StepOrder
from docnmt_fairseq.modules.source_states import SourceStates
from docnmt_fairseq.ragged import Ragged
from tests.conftest import layouts, make_layout

WIDTH = 4
LENGTHS = (np.array([3, 0, 1, 5]), np.array([2, 0, 0, 1]))  # of the states of two sources
TARGETS = Ragged([2, 3, 1, 4])


def stirred(module):
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data.normal_(0, 0.7, generator=generator)
    return module.double().eval()


def chi_of(recording, module):
    """Returns χ of a module that reported once."""
    (evidence,) = (e for e in recording.of(module) if isinstance(e, ContextFreeIndicator))
    return evidence.chi


def rows(tensor, lengths):
    return tensor.split(list(map(int, lengths)))


@pytest.mark.parametrize("attention", ["ca-att", "ca-att-bahdanau", "ca-att-luong"])
@pytest.mark.parametrize("name", ["flat", "hierarchical", "parallel"])
def test_chi_of_a_word_is_the_mean_over_the_states_that_it_sees(name, attention):
    config = CombinationConfig(WIDTH, (WIDTH, 3), WIDTH, attention, score_dim=5)
    combination = stirred(ATTENTION_COMBINATIONS[name](config))
    x = torch.randn(TARGETS.total, WIDTH).double()
    states = [torch.randn(int(n.sum()), width).double() for n, width in zip(LENGTHS, config.source_dims)]
    with record(ContextFreeIndicator) as recording:
        combine_packed(combination, x, TARGETS, [SourceStates(*source) for source in zip(states, LENGTHS)])
    flat = name == "flat"
    readers = [combination.reader] if flat else [attention.reader for attention in combination.attentions]
    assert {owner for owner, _ in recording.entries} == set(readers)
    for reader, sources in zip(readers, [(0, 1)] if flat else [(0,), (1,)]):
        expected = []
        for sentence, queries in enumerate(rows(x, TARGETS.lengths)):
            chi = []  # [words, states] of each source
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
def test_words_with_context_have_a_chi_and_others_none(layout):
    mechanism = stirred(CAAttention(ContextConfig(embed_dim=WIDTH, heads=2, head_dim=2)))
    x = torch.randn(layout.words.total, WIDTH).double()
    with record(ContextFreeIndicator) as recording:
        mechanism(x, layout)
    reader, has_context = mechanism.attention.attentions[0].reader, mechanism.select(layout).reached
    if not has_context.any():
        assert not recording.entries
        return
    chi = chi_of(recording, reader)
    assert torch.equal(~chi.isnan(), has_context)
    whole = make_layout(layout.words.lengths, layout.sentences.lengths)
    for document, sentences in enumerate(layout.sentences.lengths):  # as if it were alone
        first = int(layout.sentences.offsets[document])
        words = slice(int(whole.words.offsets[first]), int(whole.words.offsets[first + sentences]))
        with record(ContextFreeIndicator) as alone:
            mechanism(x[words], make_layout(layout.words.lengths[first : first + sentences], [sentences]))
        if alone.entries:
            torch.testing.assert_close(chi_of(alone, reader), chi[words], equal_nan=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_chi_of_ca_rnn_is_its_forget_gate(reverse):
    cell, words = stirred(ContextAwareRNN(3, WIDTH)), Ragged([2, 5, 1, 3])
    x = torch.randn(words.total, 3).double()
    with record(ContextFreeIndicator) as whole:
        cell.sequence(x, StepOrder(words, reverse=reverse))
    expected = []
    for row in rows(x, words.lengths):
        state, gates = cell.initial(1, x), []
        for item in row.flip(0) if reverse else row:
            with record(ContextFreeIndicator) as step:
                state = cell.step(item[None], state)
            gates.append(chi_of(step, cell))
        expected.append(torch.cat(gates[::-1] if reverse else gates))
    torch.testing.assert_close(chi_of(whole, cell), torch.cat(expected), atol=1e-12, rtol=0)


def test_nothing_is_computed_for_nobody():
    asked = []
    ReportsChi().show(lambda: asked.append(1))
    assert not asked
