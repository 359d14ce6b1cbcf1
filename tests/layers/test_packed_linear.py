"""Packed linear layers equal PyTorch's within the precision of their arithmetic; rounding is idempotent."""

import dataclasses

import pytest
import torch
from torch import nn

from docnmt_fairseq.layers.packed_linear import (
    PRECISIONS,
    PackedLinear,
    available,
    int8_rows,
    pack_linears,
    round_weights,
    rounded,
    weights_to_round,
)
from docnmt_fairseq.native import cpu

pytestmark = pytest.mark.cpu
OLDER = {"bf16": False, "int8_engine": "fbgemm", "int8_dot_products": False}  # x86 with AVX2


@pytest.fixture(params=[{}, OLDER], ids=["this CPU", "without bf16 and VNNI"])
def processor(request, monkeypatch):
    limited = dataclasses.replace(cpu.capabilities(), **request.param)
    if limited.int8_engine not in torch.backends.quantized.supported_engines:
        limited = dataclasses.replace(limited, int8_engine=None)  # no fbgemm on aarch64
    monkeypatch.setattr(cpu, "capabilities", lambda: limited)
    return limited


@pytest.fixture
def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 9, bias=False)).eval()


def tolerance(precision, processor):
    """Largest error relative to the largest output, of two layers with 8 significant bits (int8: 8 or 7)."""
    return {"float32": 1e-6, "bf16": 0.01, "int8": 0.02 if processor.int8_dot_products else 0.04}[precision]


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(1, 24), (3, 4, 24)], ids=str)
def test_products_have_the_precision_of_their_arithmetic(model, processor, precision, shape):
    if not available(precision):
        pytest.skip(f"no {precision} products here")
    x = torch.randn(shape)
    expected = model(x).detach()
    pack_linears(model, precision)
    assert isinstance(model[0], PackedLinear)
    with torch.no_grad():
        found = model(x)
    error = float((found - expected).abs().max() / expected.abs().max())
    assert found.dtype == torch.float32 and error < tolerance(precision, processor)
    assert error > 1e-5 or precision == "float32"
    assert torch.equal(model(x).detach(), expected), "with gradients it is nn.Linear"


def test_bf16_without_hardware_support_rounds_weights_and_multiplies_in_float32(model, processor):
    x = torch.randn(5, 24)
    expected = x @ model[0].weight.bfloat16().float().t() + model[0].bias
    pack_linears(model, "bf16")
    with torch.no_grad():
        found = model[0](x)
    assert torch.allclose(found, expected, atol=1e-6) == (not processor.bf16)


def test_changed_weight_is_not_taken_from_the_packed_copy(model):
    pack_linears(model)
    with torch.no_grad():
        model[0].weight.mul_(2)
        x = torch.randn(5, 24)
        torch.testing.assert_close(model[0](x), x @ model[0].weight.t() + model[0].bias)
        model.double()
        assert model(x.double()).dtype == torch.float64


def test_int8_row_keeps_its_precision_next_to_larger_rows(model, processor):
    """The last row is so large that a common scale would leave nothing of the others."""
    if not available("int8"):
        pytest.skip("no int8 products here")
    x = torch.randn(6, 24) * torch.tensor([1, 1e-3, 1, 0, 1, 1e4])[:, None]
    expected = model(x).detach()
    pack_linears(model, "int8")
    with torch.no_grad():
        errors = (model(x) - expected).abs().amax(1) / expected.abs().amax(1)
    assert (errors < tolerance("int8", processor)).all()


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
