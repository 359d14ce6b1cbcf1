"""Alternating training of χ and the vectors."""

import pytest
import torch
from torch import nn

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.convolution import ConvolutionalResidual, ConvolutionalSentenceEncoder
from docnmt_fairseq.ca_layers.decomposition import AlternatingUpdates
from docnmt_fairseq.ca_layers.embeddings import BagOfStates, ContextAwareEmbedding, SparseFeatures
from docnmt_fairseq.ca_layers.feed_forward import ContextAwareLayer, ResidualBlock
from docnmt_fairseq.multisource.base import CombinationConfig
from docnmt_fairseq.multisource.combinations import AttentionToOneSource
from tests.support.comparison import stirred
from tests.support.residual import joined_residual

ROWS = Ragged([2, 3])
CA_ATT = ("ca-att", "ca-att-bahdanau", "ca-att-luong")


class Attention(AttentionToOneSource):
    """CA-ATT of states to one source."""

    def __init__(self, score):
        super().__init__(CombinationConfig(4, (4,), 4, score, score_dim=3), 0)

    def forward(self, x):
        return super().forward(x, self.project_source(x), torch.zeros(x.shape[:2], dtype=torch.bool))[0]


# Each layer, what it is given, and the parameters of its χ by name.
LAYERS = {
    "ca-nn": (lambda: ContextAwareLayer(nn.Linear(4, 4), 4, 4), (torch.randn(5, 4),), ("score",)),
    "ca-nn of ca-nn": (
        lambda: ContextAwareLayer(ContextAwareLayer(nn.Linear(4, 4), 4, 4), 4, 4), (torch.randn(5, 4),), ("score",)
    ),
    "ca-res": (
        lambda: joined_residual(ResidualBlock(), [4, 3, 4], torch.tanh), (torch.randn(5, 4),), ("score",)
    ),
    "ca-cnn": (lambda: ConvolutionalSentenceEncoder(4, 2), (torch.randn(5, 4), ROWS), ("score",)),
    "ca-res of patches": (
        lambda: ConvolutionalResidual(ResidualBlock(), 2, 3, (3,), torch.tanh), (torch.randn(2, 2, 5),), ("score",)
    ),
    "ca-em": (
        lambda: ContextAwareEmbedding(6, 4, 2, padding=1), (torch.arange(2, 6),), ("theta", "for_chi")
    ),
    "ca-bsfe": (lambda: BagOfStates(4, 2), (torch.randn(5, 4), ROWS), ("theta", "for_chi")),
    "ca-bsfe of symbols": (
        lambda: SparseFeatures(6, 4, 2), (torch.arange(5), ROWS), ("theta", "words_for_chi")
    ),
    **{name: (lambda name=name: Attention(name), (torch.randn(2, 3, 4),), ("score",)) for name in CA_ATT},
}  # fmt: skip


def is_of_chi(name, of_chi):
    return any(part in of_chi for part in name.split("."))


@pytest.mark.parametrize("kind", LAYERS)
def test_chi_and_vectors_are_trained_alternately(kind):
    make, given, of_chi = LAYERS[kind]
    model = nn.Sequential(nn.Linear(1, 1))
    model.layer = stirred(make(), torch.float32)
    alternating = AlternatingUpdates(model, em_steps=3)
    for update in range(9):
        model.zero_grad()
        alternating.set_num_updates(update)
        model.layer(*given).square().sum().backward()
        chi_trains = update in (0, 1, 2, 6, 7, 8)
        for name, parameter in model.layer.named_parameters():
            assert bool(parameter.grad.any()) == (is_of_chi(name, of_chi) == chi_trains), (update, name)
        alternating.clear_frozen()
        for name, parameter in model.layer.named_parameters():
            assert (parameter.grad is not None) == (is_of_chi(name, of_chi) == chi_trains), (update, name)


def test_layers_below_are_always_trained():
    model = nn.Sequential(nn.Linear(4, 4), stirred(ContextAwareLayer(nn.Linear(4, 4), 4, 4), torch.float32))
    c = torch.randn(5, 4)

    def gradient():
        model.zero_grad()
        model(c).square().sum().backward()
        return model[0].weight.grad

    free = gradient().clone()
    alternating = AlternatingUpdates(model, em_steps=1)
    for update in range(2):
        alternating.set_num_updates(update)
        torch.testing.assert_close(gradient(), free)
