"""Context-aware convolutions over tokens or images: CA-CNN, and CA-RES as a convolution."""

from typing import Callable, Iterator, List, Sequence, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.ca_layers.decomposition import ChiGated, ScoreGated, begin_constant, compose
from docnmt_fairseq.ca_layers.feed_forward import ResidualBlock, seen_widths
from docnmt_fairseq.layers.base import ModulesOf
from docnmt_fairseq.layers.sentence_encoders import SENTENCE_ENCODERS, SentenceEncoder


def convolution(inputs: int, outputs: int, kernel: Sequence[int]) -> Union[nn.Conv1d, nn.Conv2d]:
    """Convolution over tokens or images, depending on the number of kernel dimensions."""
    if len(kernel) == 1:
        return nn.Conv1d(inputs, outputs, (kernel[0],))
    height, width = kernel
    return nn.Conv2d(inputs, outputs, (height, width))


def same_padding(kernel: Sequence[int]) -> List[int]:
    """Padding for ``F.pad`` that keeps the input's size; an even kernel extends one position further to the right."""
    return [places for k in reversed(kernel) for places in ((k - 1) // 2, k // 2)]


class PatchMixture(ScoreGated):
    """w = χ(c) v(c) + (1 − χ(c)) w_0 for every patch c, v(c) = W c + b, χ(c) = σ(vᵀc + b) ([Z] eq. 38-40).

    Args:
        kernel: size of a patch, one number for tokens, two for images.
        chi_bias: initial b of χ, which starts as the same number for all patches.
    """

    def __init__(self, inputs: int, outputs: int, kernel: Sequence[int], chi_bias: float = 0.0):
        super().__init__()
        self.kernel = tuple(kernel)
        self.v = convolution(inputs, outputs, self.kernel)
        self.score = begin_constant(convolution(inputs, 1, self.kernel), chi_bias)
        self.default = nn.Parameter(torch.zeros(outputs))  # w_0

    def of_tokens(self, x: Tensor, rows: Ragged) -> Tensor:
        """Packed [N, outputs] from packed x [N, inputs]; patches do not cross row boundaries.

        One convolution over all rows, separated by zeros.
        """
        (k,) = self.kernel
        before, gap = (k - 1) // 2, k // 2
        place = torch.arange(rows.total, device=x.device) + gap * rows.item_row
        spread = x.new_zeros(before + rows.total + gap * rows.rows, x.size(1)).index_copy(0, place + before, x)
        spread = spread.t().unsqueeze(0)  # [1, inputs, before + N + R · gap]
        score, v = (layer(spread)[0].t().index_select(0, place) for layer in (self.score, self.v))
        return compose(self.indicator(score), v, self.default)


class ContextAwareConvolution(PatchMixture):
    """CA-CNN over images or padded tokens, with zeros outside the input; see :class:`PatchMixture`."""

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, *size] from x [B, inputs, *size]."""
        x = F.pad(x, same_padding(self.kernel))
        default = self.default.view(-1, *[1] * len(self.kernel))
        return compose(self.indicator(self.score(x)), self.v(x), default)


@SENTENCE_ENCODERS.register("ca-cnn")
class ConvolutionalSentenceEncoder(PatchMixture, SentenceEncoder):
    """s_j = (1/m_j) Σ_i w_i, w a context-aware convolution over three tokens. ([Z] leaves the pooling open.)"""

    def __init__(self, embed_dim: int, heads: int):
        super().__init__(embed_dim, embed_dim, (3,))

    def forward(self, x: Tensor, sentences: Ragged) -> Tensor:
        return sentences.mean(self.of_tokens(x, sentences))


class PatchGate(ScoreGated):
    """χ(c) v + (1 − χ(c)) w_0 at every position, with patch c and given v ([Z] eq. 42)."""

    def __init__(self, inputs: int, outputs: int, kernel: Sequence[int], chi_bias: float):
        super().__init__()
        self.score = begin_constant(convolution(inputs, 1, kernel), chi_bias)
        self.default = nn.Parameter(torch.zeros(outputs))  # w_0

    def forward(self, seen: Tensor, v: Tensor) -> Tensor:
        """[B, outputs, *size] from v and the padded input of χ."""
        default = self.default.view(-1, *[1] * (v.dim() - 2))
        return compose(self.indicator(self.score(seen)), v, default)


class ConvolutionalResidual(ChiGated):
    """w_i = χ_i v_i + (1 − χ_i) w_{i0}, v_i = f(W_i * [c; w_{i−1}; …] + b_i), i = 1 … l, at every position; gives w_l.

    As in :class:`~docnmt_fairseq.ca_layers.feed_forward.ContextAwareResidual`, v_i sees the input and the previous n_v
    outputs, χ_i the previous n_σ, here their patches ([Z] eq. 40 and 42, sec. 3.5.1 and 4.7.2), with zeros outside
    the input.
    """

    def __init__(
        self,
        block: ResidualBlock,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        activation: Callable[[Tensor], Tensor] = torch.relu,
        chi_bias: float = 0.0,
    ):
        super().__init__()
        self.block, self.kernel, self.activation = block, tuple(kernel), activation
        widths = [inputs, *[outputs] * block.layers]

        def depths(seen: int) -> List[int]:
            return [sum(seen_widths(widths, i, seen)) for i in range(block.layers)]

        self.v = nn.ModuleList(convolution(depth, outputs, self.kernel) for depth in depths(block.seen_by_v))
        gated = [] if block.always_on else depths(block.seen_by_chi)
        self.gates = ModulesOf(PatchGate(depth, outputs, self.kernel, chi_bias) for depth in gated)

    def forward(self, x: Tensor) -> Tensor:
        """[B, outputs, *size] from x [B, inputs, *size]."""
        padding = same_padding(self.kernel)
        w, seen = x, [F.pad(x, padding)]  # the input, then the outputs, nearest first
        for i, v in enumerate(self.v):
            w = self.activation(v(torch.cat(seen[: 1 + self.block.seen_by_v], dim=1)))
            if not self.block.always_on:
                w = self.gates[i](torch.cat(seen[: 1 + self.block.seen_by_chi], dim=1), w)
            seen.insert(1, F.pad(w, padding))
        return w

    def chi_parameters(self) -> Iterator[nn.Parameter]:
        for gate in self.gates:
            yield from gate.chi_parameters()
