"""Mechanisms by which target words see previous target sentences: word by word as a search goes, and all at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from docnmt_fairseq.modules.context import CONTEXT_MECHANISMS, ContextConfig, MemoryConfig, target_mechanisms
from docnmt_fairseq.search.rounds import pad_previous
from tests.conftest import layouts, make_layout
from tests.modules.comparison import PRECISIONS

every_mechanism = pytest.mark.parametrize("name", target_mechanisms())


def build(name, dtype, contexts):
    torch.manual_seed(0)
    config = ContextConfig(embed_dim=6, heads=2, head_dim=3, ffn_dim=5, memory=MemoryConfig(contexts=contexts))
    return CONTEXT_MECHANISMS[name](config).to(dtype)


def previous_of(layout, parts, contexts):
    """Returns what stands in ``parts`` for the sentences before each."""
    place = layout.sentence_position.tolist()
    return [list(parts[max(row - contexts, row - place[row]) : row]) for row in range(len(parts))]


@PRECISIONS
@every_mechanism
@settings(max_examples=10)
@given(layout=layouts(max_words=4), contexts=st.integers(1, 4))
def test_looking_back_gives_what_all_at_once_gives(name, dtype, tolerance, layout, contexts):
    mechanism = build(name, dtype, contexts)
    x = torch.randn(layout.words.total, 6, dtype=dtype)
    at_once, reached = mechanism(x, layout), mechanism.reached(layout)
    memories = mechanism.remember(x).split(layout.words.lengths.tolist())
    previous = previous_of(layout, memories, contexts)
    assert reached.tolist() == np.repeat([bool(of_row) for of_row in previous], layout.words.lengths).tolist()
    if not any(previous):
        return
    steps = mechanism.look_back(layout.words.pad(x), *pad_previous(previous))  # a row's words as its hypotheses
    assert steps.isfinite().all()
    found = layout.words.pack(steps)[reached]
    torch.testing.assert_close(found, at_once[reached], atol=tolerance, rtol=tolerance)


def test_previous_sentences_are_padded_to_the_longest_and_to_the_most():
    one, two, three = (torch.full((length, 2), float(length)) for length in (1, 2, 3))
    memory, padding = pad_previous([[], [one], [three, two]])
    assert memory.shape == (3, 2, 3, 2)
    assert (~padding).sum(-1).tolist() == [[0, 0], [1, 0], [3, 2]]
    assert (
        torch.equal(memory[2, 0], three) and torch.equal(memory[2, 1, :2], two) and torch.equal(memory[1, 0, :1], one)
    )
    assert (memory[padding] == 0).all()


def test_target_sentences_have_a_layout_of_their_own():
    layout = make_layout([1] * 7, [3, 2, 2], decoded=np.array([1, 2, 5, 6]), target_lengths=np.array([4, 1, 2, 3]))
    targets = layout.of_targets
    assert targets.words.lengths.tolist() == [4, 1, 2, 3] and targets.sentences.lengths.tolist() == [2, 2]
    assert targets.sentence_position.tolist() == [0, 1, 0, 1]
    assert layout.of_targets is targets
    assert layout.with_targets(np.array([1, 1, 1, 5])).of_targets.words.lengths.tolist() == [1, 1, 1, 5]
