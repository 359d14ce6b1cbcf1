"""Best and sampled candidates equal their definitions."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.search import BeamSearch

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.precision import distinct_integers
from docnmt_fairseq.search.candidates import best, largest, sampled
from docnmt_fairseq.search.options import SearchOptions


def normalised(log_probs):
    """Returns logits with the logarithm of their sum."""
    return log_probs, torch.zeros(*log_probs.shape[:-1], 1)


@pytest.mark.parametrize(("kinds", "vocabulary"), [(1, 7), (2, 300), (30, 5000), (10**9, 5120), (2, 5120)])
def test_largest_values_with_ties_by_index(kinds, vocabulary):
    x = -torch.randint(kinds, (6, vocabulary), generator=torch.Generator().manual_seed(1)).float()  # zeros are -0
    x[::2] += 0.0
    values, places = largest(x, 4)
    expected = x.sort(descending=True, stable=True)
    assert torch.equal(values, expected.values[:, :4]) and torch.equal(places, expected.indices[:, :4])
    keys = distinct_integers(x, torch.arange(vocabulary).expand_as(x))
    assert torch.equal(keys.sort(descending=True).indices, expected.indices)


def test_distinct_integers_are_ordered():
    x = torch.tensor([[-np.inf, -3e38, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, 3e38, np.inf]])
    keys = distinct_integers(x, torch.tensor([[2**32 - 1, 0, 5, 4, 1, 0, 3, 2, 2**32 - 1, 7]]))
    assert (keys.diff() > 0).all()


@pytest.mark.parametrize("kinds", [1, 3, 10**6])
def test_best_candidates_of_all_hypotheses(kinds):
    generator = torch.Generator().manual_seed(2)
    logits = torch.randint(kinds, (5, 4, 2000), generator=generator).float()
    totals = torch.randint(kinds, (5, 4), generator=generator).float()
    found = best(*normalised(logits), totals, 4)
    expected = (logits + totals[..., None]).flatten(1).sort(descending=True, stable=True)
    assert found.scores.tolist() == expected.values[:, :8].tolist()
    assert found.tokens.tolist() == (expected.indices[:, :8] % 2000).tolist()
    assert found.parents.tolist() == (expected.indices[:, :8] // 2000).tolist()


@pytest.mark.parametrize("vocabulary", [9, 300, 2000])
@pytest.mark.parametrize("kinds", [1, 3, 10**6])
def test_best_candidates_in_the_order_of_fairseq(kinds, vocabulary):
    generator = torch.Generator().manual_seed(2)
    logits = torch.randint(kinds, (6, 4, vocabulary), generator=generator).float()
    totals = torch.randint(kinds, (6, 4), generator=generator).float()
    logits[:3], totals[:3] = logits[:3, :1], torch.tensor([0, -torch.inf, -torch.inf, -torch.inf])
    found = best(*normalised(logits), totals, 4, fairseq_steps=np.array([0, 0, 0, 1, 2, 3]))
    search = BeamSearch(Dictionary())
    expected = [
        torch.cat(parts)
        for parts in zip(search.step(0, logits[:3], None), search.step(1, logits[3:], totals[3:, :, None]))
    ]
    for part, other in zip((found.scores, found.tokens, found.parents), expected):
        assert part.tolist() == other.tolist()


def test_sampling_follows_probabilities():
    probabilities = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05])
    log_probs = probabilities.log().expand(20000, 1, 5)
    uniform = torch.rand(20000, 1, generator=torch.Generator().manual_seed(3))
    totals = torch.full((20000, 1), -2.0)

    def shares(**options):
        found = sampled(*normalised(log_probs), totals, uniform, **options)
        np.testing.assert_allclose(found.scores, log_probs[0, 0][found.tokens] - 2, rtol=1e-5)
        return np.bincount(found.tokens[:, 0], minlength=5) / 20000

    np.testing.assert_allclose(shares(), [0.5, 0, 0.3, 0.15, 0.05], atol=0.02)
    np.testing.assert_allclose(shares(top_k=2), [0.625, 0, 0.375, 0, 0], atol=0.02)
    np.testing.assert_allclose(shares(top_p=0.6), [0.625, 0, 0.375, 0, 0], atol=0.02)
    last = sampled(*normalised(log_probs[:1]), totals[:1], torch.ones(1, 1))
    assert last.tokens.tolist() == [[4]]


@pytest.mark.parametrize("options, most", [({}, 2), ({"top_k": 1}, 1), ({"top_p": 0.9}, 2)])
def test_sampling_of_tiny_probabilities(options, most):
    """At a low temperature, excluded tokens may have had all the probability in float32."""
    log_probs = torch.tensor([-torch.inf, -200.0, -200.5, -torch.inf, -400.0]).expand(100, 1, 5)
    uniform = torch.rand(100, 1, generator=torch.Generator().manual_seed(3))
    found = sampled(*normalised(log_probs), torch.zeros(100, 1), uniform, **options)
    assert set(found.tokens[:, 0].tolist()) == set(range(1, 1 + most))
    np.testing.assert_allclose(found.scores, log_probs[0, 0][found.tokens])


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 0},
        {"nbest": 6},
        {"no_repeat_ngram_size": 1},
        {"min_len": 300},
        {"temperature": 0.0},
        {"lenpen": float("nan")},
        {"sampling": True, "sampling_topp": 1.5},
        {"sampling": True, "sampling_topp": 0.5, "sampling_topk": 2},
    ],
    ids=str,
)
def test_options_out_of_range(options):
    with pytest.raises(InputError):
        SearchOptions(**options)


def test_longest_translation_is_within_the_positions():
    assert SearchOptions(max_len_a=1e308).longest(20, 1024) == 1023
    assert SearchOptions(max_len_a=1.5, max_len_b=2).longest(3, 1024) == 6
