"""CA-CNN: the context-aware layer on every patch of an image, or on every window of tokens."""

from typing import Iterator, List, Sequence, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.decomposition import ChiGated, begin_constant, compose
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoder


def convolution(inputs: int, outputs: int, kernel: Sequence[int]) -> Union[nn.Conv1d, nn.Conv2d]:
    """PyTorch's convolution over tokens or images, as the patch has one size or two."""
    if len(kernel) == 1:
        return nn.Conv1d(inputs, outputs, (kernel[0],))
    height, width = kernel
    return nn.Conv2d(inputs, outputs, (height, width))


def around(kernel: Sequence[int]) -> List[int]:
    """How many places an input is padded by, as PyTorch counts them: from its last dimension.

    A place's patch is around it, half of it before; an even one has one place more behind.
    """
    return [places for k in reversed(kernel) for places in ((k - 1) // 2, k // 2)]


class PatchMixture(ChiGated):
    """The layer of :class:`ContextAwareConvolution`, for packed tokens.

    Args:
        inputs: depth of the input.
        outputs: depth of the output.
        kernel: size of a patch, one number for tokens, two for images.
        chi_bias: b of eq. 39 at the start, where χ is the same for all patches.
    """

    def __init__(self, inputs: int, outputs: int, kernel: Sequence[int], chi_bias: float = 0.0):
        super().__init__()
        self.kernel = tuple(kernel)
        self.v = convolution(inputs, outputs, self.kernel)
        self.score = begin_constant(convolution(inputs, 1, self.kernel), chi_bias)
        self.default = nn.Parameter(torch.zeros(outputs))  # w_0

    def of_tokens(self, x: Tensor, rows: Ragged) -> Tensor:
        """Packed [N, outputs] from packed x [N, inputs]; no patch reaches from one row into another.

        All rows go through one convolution, with as many zeros between them as a patch has places behind its own.
        """
        (k,) = self.kernel
        before, gap = (k - 1) // 2, k // 2
        place = torch.arange(rows.total, device=x.device) + gap * rows.item_row
        spread = x.new_zeros(before + rows.total + gap * rows.rows, x.size(1)).index_copy(0, place + before, x)
        spread = spread.t().unsqueeze(0)  # [1, inputs, before + N + R · gap]
        score, v = (layer(spread)[0].t().index_select(0, place) for layer in (self.score, self.v))
        return compose(self.indicator(score), v, self.default)

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        """v and b of eq. 39; see :class:`ChiGated`."""
        return self.score.parameters()


class ContextAwareConvolution(PatchMixture):
    """w = χ(c) v(c) + (1 − χ(c)) w_0 on every patch c, v(c) = W c + b, χ(c) = σ(vᵀc + b) ([Z] eq. 38-40).

    A place's patch is around it, half of it before; an even one has one place more behind. Outside is zero. For the
    arguments see :class:`PatchMixture`.
    """

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, *size] from x [B, inputs, *size]."""
        x = F.pad(x, around(self.kernel))
        default = self.default.view(-1, *[1] * len(self.kernel))
        return compose(self.indicator(self.score(x)), self.v(x), default)


@SENTENCE_ENCODERS.register("ca-cnn")
class ConvolutionalSentenceEncoder(PatchMixture, SentenceEncoder):
    """s_j = (1/m_j) Σ_i w_i, w a context-aware convolution over three tokens. ([Z] leaves the pooling open.)"""

    def __init__(self, embed_dim: int, heads: int):
        super().__init__(embed_dim, embed_dim, (3,))

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        """[R, d]; see :class:`SentenceEncoder`."""
        w = self.of_tokens(x, sentences)
        return sentences.mean(w)
