"""Packed linear layers equal PyTorch's within the precision of their arithmetic, on every kind of CPU."""

import dataclasses

import pytest
import torch
from torch import nn

from docnmt_fairseq.layers.packed_linear import PRECISIONS, PackedLinear, available, pack_linears
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
    rounded = x @ model[0].weight.bfloat16().float().t() + model[0].bias
    pack_linears(model, "bf16")
    with torch.no_grad():
        found = model[0](x)
    assert torch.allclose(found, rounded, atol=1e-6) == (not processor.bf16)


def test_changed_weight_is_not_taken_from_the_packed_copy(model):
    pack_linears(model)
    with torch.no_grad():
        model[0].weight.mul_(2)
        x = torch.randn(5, 24)
        torch.testing.assert_close(model[0](x), x @ model[0].weight.t() + model[0].bias)
        model.double()
        assert model(x.double()).dtype == torch.float64


def test_packing_keeps_the_state_dict(model, processor):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pack_linears(model, "int8")
    assert before.keys() == model.state_dict().keys()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


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
