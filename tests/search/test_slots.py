"""Decoder states by slot."""

import numpy as np
import torch

from docnmt_fairseq.search.slots import SlotTensor, StepStates, TokenCache


def test_shorter_sentence_is_padded_with_zeros():
    held = SlotTensor()
    held.put(torch.ones(2, 3, 4), np.array([0, 1]))
    held.put(torch.full((1, 1, 4), 5.0), np.array([0]))
    assert held.seen()[0].tolist() == [[5.0] * 4, [0.0] * 4, [0.0] * 4] and (held.seen()[1] == 1).all()
    held.put(torch.full((1, 5, 4), 7.0), np.array([2]))  # longer, in a new slot
    assert held.seen().shape == (3, 5, 4)
    assert held.seen()[0, :, 0].tolist() == [5, 0, 0, 0, 0] and held.seen()[1, :, 0].tolist() == [1, 1, 1, 0, 0]
    held.keep(np.array([1, 0]))
    assert held.seen()[:, :, 0].tolist() == [[1, 1, 1], [5, 0, 0]]


def test_states_stay_when_the_capacity_grows():
    states = StepStates()
    for step in range(20):
        slots = 1 if step < 10 else 2
        states.write(torch.full((slots, 2, 3), float(step)), np.array([step, 0][:slots]))
    assert states.of(0, np.zeros(20, dtype=np.int64))[:, 0].tolist() == list(range(20))


def test_visible_tokens_stay_when_others_are_dropped():
    """Two sentences; all hypotheses of one continue its first, so it has fewer visible tokens than the other."""
    cache, expected = TokenCache(2, torch.device("cpu")), [[[], []], [[], []]]
    cache.clear(np.array([0, 1]))
    for number in range(40):
        cache.begin_step()
        values = torch.arange(4.0).view(2, 1, 2, 1) + 4 * number
        (found,) = cache.write("a", (values,))
        parents = torch.tensor([[0, 0], [0, 1]])
        for slot in range(2):
            expected[slot] = [
                [*expected[slot][hypothesis], values[slot, 0, hypothesis, 0].item()] for hypothesis in range(2)
            ]
            seen = [found[slot, 0, cache.seen[slot, hypothesis], 0].tolist() for hypothesis in range(2)]
            assert seen == expected[slot]
            expected[slot] = [expected[slot][parent] for parent in parents[slot]]
        cache.reorder(parents)
