"""Low-rank adaptation against its definition in loops; merging."""

import pytest
import torch
from torch import nn

from docnmt_fairseq.layers.lora import LoRALinear, add_lora, merge_lora, weight_of
from docnmt_fairseq.layers.packed_linear import pack_linears

RANK, ALPHA = 2, 6.0


def updated(dtype=torch.float32, dropout=0.0, **options):
    """Returns a linear layer with an update that is not zero."""
    torch.manual_seed(1)
    linear = nn.Linear(5, 3, **options).to(dtype)
    add_lora(linear, RANK, ALPHA, dropout)
    with torch.no_grad():
        linear.lora_B.normal_()
    return linear


def by_definition(linear, x):
    """Hu et al. (2021), eq. 3: h = W x + b + (α/r) B A x, in loops."""
    weight, a, b = linear.weight.tolist(), linear.lora_A.tolist(), linear.lora_B.tolist()
    bias = [0.0] * len(weight) if linear.bias is None else linear.bias.tolist()
    rows = []
    for row in x.tolist():
        narrow = [sum(a[k][j] * row[j] for j in range(len(row))) for k in range(RANK)]
        rows.append([
            sum(weight[i][j] * row[j] for j in range(len(row)))
            + bias[i]
            + ALPHA / RANK * sum(b[i][k] * narrow[k] for k in range(RANK))
            for i in range(len(weight))
        ])  # fmt: skip
    return torch.tensor(rows)


@pytest.mark.parametrize("bias", [True, False])
def test_output_equals_definition(bias):
    linear, x = updated(bias=bias), torch.randn(4, 5)
    torch.testing.assert_close(linear(x), by_definition(linear, x))


def test_initial_output_is_that_of_the_original_layer():
    linear, x = nn.Linear(5, 3), torch.randn(4, 5)
    before, state = linear(x), {name: value.clone() for name, value in linear.state_dict().items()}
    add_lora(linear, RANK, ALPHA)
    assert torch.equal(linear(x), before)
    assert linear.lora_A.abs().sum() > 0 and linear.lora_A.abs().max() <= 5**-0.5  # Kaiming-uniform with a = √5
    assert linear.state_dict().keys() == {*state, "lora_A", "lora_B"}
    assert all(torch.equal(linear.state_dict()[name], value) for name, value in state.items())


def test_dropout_of_the_update_input_in_training_only():
    linear, x = updated(dropout=0.5), torch.ones(1, 5)
    torch.manual_seed(3)
    kept = 2.0 * (nn.functional.dropout(x, 0.5) > 0)
    torch.manual_seed(3)
    expected = nn.Linear.forward(linear, x) + ALPHA / RANK * kept @ linear.lora_A.T @ linear.lora_B.T
    torch.testing.assert_close(linear.train()(x), expected)
    torch.testing.assert_close(linear.eval()(x), by_definition(linear, x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_merged_layer_is_linear_with_the_same_output(dtype):
    model = nn.Sequential(updated(dtype, dropout=0.5), nn.Linear(3, 3).to(dtype)).eval()
    x = torch.randn(4, 5, dtype=dtype)
    before, weight = model(x), weight_of(model[0])
    keys = nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 3)).state_dict().keys()
    merge_lora(model)
    assert type(model[0]) is nn.Linear and model.state_dict().keys() == keys
    assert torch.equal(model[0].weight, weight)
    tolerance = 1e-5 if dtype == torch.float32 else 0.05
    torch.testing.assert_close(model(x), before, atol=tolerance, rtol=tolerance)


def test_packing_skips_layers_that_are_not_merged():
    linear, x = updated(), torch.randn(4, 5)
    pack_linears(nn.Sequential(linear))
    assert type(linear) is LoRALinear
    with torch.no_grad():
        torch.testing.assert_close(linear(x), by_definition(linear, x))
