"""Models are made of modules that add up gradients in float32, fairseq's own tables of positions among them."""

import pytest
import torch
from fairseq.modules.learned_positional_embedding import LearnedPositionalEmbedding
from torch import nn

from docnmt_fairseq.layers.positions import LearnedPositions
from docnmt_fairseq.layers.precision import Embedding, LayerNorm
from docnmt_fairseq.models.fp32_accumulation import LearnedTable, accumulate_in_fp32

TOKENS, WIDTH = 4096, 4


def gradient_of(module, dtype, tokens):
    """Returns the gradient of a table in float32, where every output's is 0.01."""
    module = module.to(dtype)
    output = module(tokens)
    output.backward(torch.full_like(output, 0.01))
    assert output.dtype == module.weight.grad.dtype == dtype
    return module.weight.grad.float()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_positions_of_fairseq(dtype):
    tokens = torch.full((TOKENS, 2), 3)
    found, expected = (gradient_of(LearnedTable(4, WIDTH, 1), kind, tokens) for kind in (dtype, torch.float32))
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0)
    assert float(found[2, 0]) > 40 and not found[1].any()
    padded, half = LearnedTable(4, WIDTH, 1), torch.tensor([[3, 3, 1]])
    assert torch.equal(padded.to(dtype)(half)[0], padded.weight[[2, 3, 1]])


def test_models_are_made_of_these():
    fairseqs = LearnedPositionalEmbedding(4, WIDTH, 1)
    model = nn.Sequential(
        nn.Embedding(4, WIDTH), nn.LayerNorm(WIDTH), fairseqs, LearnedPositions(4, WIDTH, "x"), nn.Linear(2, 2)
    )
    before = model.state_dict()
    accumulate_in_fp32(model)
    assert [type(module) for module in model] == [Embedding, LayerNorm, LearnedTable, LearnedPositions, nn.Linear]
    assert before.keys() == model.state_dict().keys()
