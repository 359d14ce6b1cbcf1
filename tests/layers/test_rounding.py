"""Rounded weights: rounding is idempotent, and errors have the size of the precision."""

import pytest
import torch
from torch import nn

from docnmt_fairseq.layers.packed_linear import (
    PRECISIONS,
    PackedLinear,
    int8_rows,
    pack_linears,
    round_weights,
    rounded,
    weights_to_round,
)


@pytest.fixture(scope="module")
def weight():
    """Returns rows of all magnitudes, among them zeros, equal elements and mantissas at which naive scales change."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(4000, 33, generator=generator) * 10.0 ** torch.randint(-9, 9, (4000, 1), generator=generator)
    mantissas = torch.arange(64, 1 << 23, 128 * 61, dtype=torch.int32)  # of scales of which 127 times is a tie
    ties = torch.zeros(len(mantissas), 33)
    ties[:, 5] = (mantissas | 0x3F800000).view(torch.float32) * 127
    special = torch.stack([torch.zeros(33), torch.full((33,), -0.1), torch.full((33,), 1e-30)])
    return torch.cat([rows, ties, special])


def test_rounding_is_idempotent(weight):
    integers, scales = int8_rows(weight)
    once = rounded(weight, "int8")
    assert torch.equal(once.double(), integers.double() * scales.double()[:, None])  # nothing was lost in the product
    again = int8_rows(once)
    assert torch.equal(again[0], integers) and torch.equal(again[1], scales)
    bf16 = rounded(weight, "bf16")
    assert torch.equal(rounded(bf16, "bf16"), bf16) and not torch.equal(bf16, weight)
    assert rounded(weight, "float32") is weight


def test_errors_are_at_most_half_a_scale(weight):
    _, scales = int8_rows(weight)
    largest = weight.abs().amax(1)
    assert ((rounded(weight, "int8") - weight).abs().amax(1) <= 0.501 * scales).all()
    usual = largest > 1e-9
    assert torch.allclose(scales[usual] * 127, largest[usual], rtol=2e-5)
    assert (int8_rows(weight)[0].abs().amax(1)[usual] == 127).all()


class Model(nn.Module):
    """Shared tables, as translation models have them."""

    def __init__(self):
        super().__init__()
        self.embed = self.other_embed = nn.Embedding(30, 16)
        self.positions = type("Positions", (nn.Embedding,), {})(9, 16)
        self.norm, self.first, self.last = nn.LayerNorm(16), nn.Linear(16, 16), nn.Linear(16, 30, bias=False)
        self.last.weight = self.embed.weight

    def forward(self, tokens):
        return self.last(self.norm(self.first(self.embed(tokens) + self.positions(tokens % 9))))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_linear_layers_and_token_embeddings_are_rounded_and_stay_shared(precision):
    model = Model()
    assert sorted(weights_to_round(model)) == ["embed.weight", "first.weight", "last.weight", "other_embed.weight"]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    round_weights(model, precision)
    assert model.last.weight is model.embed.weight
    for name, value in model.state_dict().items():
        expected = rounded(before[name], precision) if name in weights_to_round(model) else before[name]
        assert torch.equal(value, expected), name


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rounded_weights_give_the_same_products(precision):
    model = Model().eval()
    x = torch.randn(7, 16)
    pack_linears(model, precision)
    assert isinstance(model.first, PackedLinear)
    with torch.no_grad():
        expected = model.first(x)
        round_weights(model, precision)
        pack_linears(model, precision)
        assert torch.equal(model.first(x), expected)
