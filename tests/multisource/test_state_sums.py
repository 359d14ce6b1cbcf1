"""Weighted sums of the states of a source."""

import pytest
import torch

import docnmt_fairseq.multisource  # noqa: F401  (registers all)
from docnmt_fairseq.multisource.base import CombinationConfig
from docnmt_fairseq.multisource.scores import ATTENTION_SCORES, masked_softmax
from tests.support.sources import build_combination as build

WIDTH = 6


def test_dropout_of_ca_att():
    config = CombinationConfig(WIDTH, (4,), WIDTH, "ca-att", dropout=0.5)
    combination = build("parallel", config).train()
    x, h = torch.randn(1, 1, WIDTH).double(), torch.randn(1, 1, 4).double()
    attend, hidden = combination.attentions[0], torch.zeros(1, 1, dtype=torch.bool)
    seen_in_training = set()
    whole, _ = attend.eval().parts(x, attend.project_source(h), hidden)
    for seed in range(20):
        torch.manual_seed(seed)
        dropped, _ = attend.train().parts(x, attend.project_source(h), hidden)
        seen_in_training.add(bool((dropped == 0).all()))
        assert (dropped == 0).all() or torch.allclose(dropped, 2 * whole)
    assert seen_in_training == {False, True}


def test_dropout_of_softmax_weights():
    combination = build("flat", CombinationConfig(WIDTH, (4,), WIDTH, "bahdanau", 3, dropout=0.5)).train()
    x, padding = torch.randn(1, 1, WIDTH).double(), torch.zeros(1, 3, dtype=torch.bool)
    keys, values = combination.split(combination.project_sources([torch.randn(1, 3, 4).double()])[0])
    torch.manual_seed(0)
    read, alpha = combination.state_sum(x, combination.score(x, keys), values, padding)
    torch.manual_seed(0)
    dropped = torch.nn.functional.dropout(alpha, 0.5)
    torch.testing.assert_close(alpha.sum(), torch.ones((), dtype=torch.float64))  # shares are those before
    assert 0 < (dropped == 0).sum() < 3
    torch.testing.assert_close(read, (dropped[0, 0] @ values[0])[None])


@pytest.mark.parametrize("attention", ATTENTION_SCORES.names())
def test_large_float16_states(attention):
    """Products of width 64 of such states are not."""
    score = ATTENTION_SCORES[attention](64, (64,), 16, 4)
    generator = torch.Generator().manual_seed(1)
    x, states = ((300 * torch.randn(2, 5, 64, generator=generator)).half().requires_grad_() for _ in range(2))
    energies = score.half()(x, score.key(states, 0))
    weights = masked_softmax(energies, torch.zeros(2, 5, dtype=torch.bool))
    assert energies.isfinite().all() and weights.isfinite().all() and weights.dtype == torch.float32
