"""Packed linear maps give what PyTorch's give, as precisely as their numbers are."""

import pytest
import torch
from torch import nn

from docnmt_fairseq.layers.packed_linear import PackedLinear, available, pack_linears
from docnmt_fairseq.layers.rounding import PRECISIONS

TOLERANCE = {"float32": 1e-6, "bf16": 0.01, "int8": 0.02}


@pytest.fixture
def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 9, bias=False)).eval()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(1, 24), (7, 24), (3, 4, 24)], ids=str)
def test_as_precise_as_the_numbers_are(model, precision, shape):
    x = torch.randn(shape)
    expected = model(x).detach()
    pack_linears(model, precision)
    assert isinstance(model[0], PackedLinear) and available(precision)
    with torch.no_grad():
        found = model(x)
    error = float((found - expected).abs().max() / expected.abs().max())
    assert found.dtype == torch.float32 and error < TOLERANCE[precision]
    assert error > 1e-5 or precision == "float32"
    assert torch.equal(model(x).detach(), expected)  # with gradients it is what it was


def test_a_weight_that_changes_is_not_taken_from_the_packed_one(model):
    pack_linears(model)
    with torch.no_grad():
        model[0].weight.mul_(2)
        x = torch.randn(5, 24)
        torch.testing.assert_close(model[0](x), x @ model[0].weight.t() + model[0].bias)
        model.double()
        assert model(x.double()).dtype == torch.float64


def test_the_state_stays_what_it_was(model):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pack_linears(model, "int8")
    assert before.keys() == model.state_dict().keys()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_row_in_int8_is_as_precise_beside_larger_ones(model):
    """Of the last row the numbers are so large that with one scale for all rows nothing would be left of the others."""
    x = torch.randn(6, 24) * torch.tensor([1, 1e-3, 1, 0, 1, 1e4])[:, None]
    expected = model(x).detach()
    pack_linears(model, "int8")
    with torch.no_grad():
        errors = (model(x) - expected).abs().amax(1) / expected.abs().amax(1)
    assert (errors < TOLERANCE["int8"]).all()
