"""Context-aware layers against their equations."""

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.convolution import ContextAwareConvolution, ConvolutionalResidual
from docnmt_fairseq.ca_layers.embeddings import ContextAwareEmbedding, SparseFeatures
from docnmt_fairseq.ca_layers.feed_forward import ContextAwareLayer, ContextAwareResidual, ResidualBlock
from docnmt_fairseq.layers.capture import ContextFreeIndicator, ContextShare, capture
from tests.reference import context_aware_layers as reference
from tests.support.comparison import PRECISIONS, assert_same, stirred
from tests.support.documents import layouts
from tests.support.residual import joined_residual


def inputs(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(4)).requires_grad_()


@PRECISIONS
def test_layer_equals_its_equation(dtype, tolerance):
    layer = stirred(ContextAwareLayer(nn.Sequential(nn.Linear(4, 3), nn.Tanh()), 4, 3), dtype)
    c = inputs(5, 4, dtype=dtype)
    slow = reference.layer(c, layer.v, layer.score, layer.default)
    assert_same(layer(c), slow, [c, *layer.parameters()], tolerance)


@PRECISIONS
@pytest.mark.parametrize("block", ["1,1,1,0", "2,1,1,0", "4,2,1,0", "4,1,3,0", "3,9,9,0", "3,2,-,1"])
def test_residual_block_equals_its_equation(block, dtype, tolerance):
    block = ResidualBlock.parse(block)
    widths = [4, 5, 3, 6, 2][: block.layers + 1]
    residual = stirred(joined_residual(block, widths, torch.tanh), dtype)
    c = inputs(5, 4, dtype=dtype)
    assert residual(c).shape == (5, widths[-1])
    assert_same(residual(c), reference.residual(c, residual), [c, *residual.parameters()], tolerance)


def test_residual_network_is_a_special_case():
    """(2, 1, –, 1) with v_2(c, w_1) = c + w_1 is x + F(x), forward and gradient."""

    class Sum(nn.Module):
        def forward(self, c, w):
            return c + w

    function = stirred(nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 4)))
    block = ContextAwareResidual(ResidualBlock.parse("2,1,-,1"), [function, Sum()], [4, 4, 4])
    c = inputs(5, 4)
    assert block(c).equal(c + function(c))
    assert sum(p.numel() for p in block.parameters()) == sum(p.numel() for p in function.parameters())
    assert_same(block(c), c + function(c), [c, *function.parameters()], 0)


@PRECISIONS
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 4), (5, 1)])
def test_image_convolution_equals_its_equation(kernel, dtype, tolerance):
    convolution = stirred(ContextAwareConvolution(2, 3, kernel), dtype)
    x = inputs(2, 2, 5, 4, dtype=dtype)
    slow = torch.stack([reference.convolution(image, convolution) for image in x])
    assert convolution(x).shape == (2, 3, 5, 4)
    assert_same(convolution(x), slow, [x, *convolution.parameters()], tolerance)


@PRECISIONS
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@settings(max_examples=8)
@given(layout=layouts())
def test_token_convolution_does_not_cross_sentences(kernel, dtype, tolerance, layout):
    convolution = stirred(ContextAwareConvolution(3, 4, (kernel,)), dtype)
    x = inputs(layout.tokens.total, 3, dtype=dtype)
    slow = reference.convolved_words(x, layout.tokens, convolution)
    assert_same(convolution.of_tokens(x, layout.tokens), slow, [x, *convolution.parameters()], tolerance)


@PRECISIONS
def test_bag_of_symbols_equals_its_equation(dtype, tolerance):
    bag = stirred(SparseFeatures(6, 4, 3, unknown=5), dtype)
    tokens, rows = torch.tensor([0, 2, 2, 5, 9, -1, 3]), Ragged([4, 2, 1])
    known = tokens.clamp(0, 5)
    unknown = [False, False, False, True, True, True, False]
    slow, start = [], 0
    for length in rows.lengths.tolist():
        part = slice(start, start := start + length)
        vectors = (bag.words(known)[part], bag.words_for_chi(known)[part], bag.theta, bag.v_0)
        slow.append(reference.bag(*vectors, unknown[part]))
    assert_same(bag(tokens, rows), torch.stack(slow), list(bag.parameters()), tolerance)


def test_gradients():
    block = stirred(joined_residual(ResidualBlock(3, 2, 2), [3, 2, 2, 3], torch.tanh))
    assert torch.autograd.gradcheck(block, inputs(2, 3))
    convolution = stirred(ContextAwareConvolution(2, 2, (2,)))
    assert torch.autograd.gradcheck(lambda x: convolution.of_tokens(x, Ragged([1, 3])), inputs(4, 2))


def test_recorded_chi():
    layer = stirred(ContextAwareLayer(nn.Linear(4, 3), 4, 3))
    convolution = stirred(ContextAwareConvolution(4, 3, (3,)))
    c = inputs(5, 4)
    with capture(ContextFreeIndicator) as recording:
        layer(c)
        convolution.of_tokens(c, Ragged([2, 3]))
    (of_layer,), (of_tokens,) = recording.of(layer), recording.of(convolution)
    torch.testing.assert_close(of_layer.chi, torch.sigmoid(layer.score(c)).squeeze(1))
    assert of_tokens.chi.shape == (5,) and not of_layer.chi.requires_grad
    with capture(ContextShare) as recording:
        layer(c)
    assert not recording.entries


@PRECISIONS
@pytest.mark.parametrize("unknown", [None, 3])
def test_embedding_equals_its_equation(unknown, dtype, tolerance):
    module = stirred(ContextAwareEmbedding(9, 4, 3, padding=1, unknown=unknown), dtype)
    tokens = torch.tensor([[4, 1, 3], [8, 3, 4]])
    slow = reference.embedding(tokens.flatten().tolist(), module).unflatten(0, tokens.shape)
    wanted = [parameter for name, parameter in module.named_parameters() if name != "weight"]
    # PyTorch passes nothing back to the row of the padding.
    assert_same(module(tokens), slow, [*wanted, module.weight], tolerance)
    assert (module(torch.tensor([1])) == 0).all()
    if unknown is not None:
        torch.testing.assert_close(module(torch.tensor([unknown]))[0], module.v_0)


@PRECISIONS
@pytest.mark.parametrize("block", ["1,1,1,0", "2,1,1,0", "3,2,1,0", "3,1,2,0", "3,2,-,1"])
@pytest.mark.parametrize("kernel", [(3,), (2, 3)])
def test_residual_convolution_equals_its_equation(block, kernel, dtype, tolerance):
    module = stirred(ConvolutionalResidual(ResidualBlock.parse(block), 2, 3, kernel, torch.tanh), dtype)
    x = inputs(2, 2, *(4, 3)[: len(kernel)], dtype=dtype)
    slow = torch.stack([reference.residual_convolution(one, module) for one in x])
    assert_same(module(x), slow, [x, *module.parameters()], tolerance)
