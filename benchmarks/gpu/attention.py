"""Stage ``attention``: conditional attention beside PyTorch's attention to the whole document, by words of it."""

from typing import Callable, Dict, Iterator, List, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.hardware import name_of
from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage, milliseconds, peak_memory
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.attention import conditional_attention
from docnmt_fairseq.context.conditional.kernels import KERNELS
from docnmt_fairseq.context.conditional.selection import KeptSentences

HEADS, DIM, WORDS_A_SENTENCE, KEPT = 8, 64, 25, 4
WORDS = (2_048, 8_192, 32_768, 131_072)
WHOLE = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
OWN = {"triton": 15, "torch": 5}  # rounds: the second takes long
ROUNDS = 15
DENSE_WORDS = 300  # documents that float64 and whole matrices can do


@STAGES.register("attention")
class Attention(Stage):
    """Forward, and forward and backward, of one call of 8 heads of 64, t = 4; errors of each first."""

    minutes = 9.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        ways = [way for way in OWN if way in KERNELS and KERNELS[way]().serves(setting.device, dtype_of(setting))]
        for way in ways:
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                yield f"error/{way}/{name_of(dtype)}", lambda way=way, dtype=dtype: error(way, dtype, setting)
        for words in (128, 256) if setting.dry else WORDS:
            for way in ("math",) if setting.device.type == "cpu" else WHOLE:
                yield f"{words}/{way}", lambda way=way, words=words: whole(way, words, setting)
            for way in ways if words < max(WORDS) else ways[:1]:  # the slow one takes a second there
                yield f"{words}/{way}", lambda way=way, words=words: own(way, words, setting)


def layout_of(words: int) -> DocumentLayout:
    """One document of about so many words, in sentences of lognormal lengths, 25 words on average."""
    sentences = max(2, words // WORDS_A_SENTENCE)
    lengths = np.random.default_rng(0).lognormal(np.log(WORDS_A_SENTENCE) - 0.18, 0.6, sentences).clip(1, 200)
    lengths = np.maximum(1, np.round(lengths * words / lengths.sum())).astype(np.int64)
    place = np.arange(sentences)
    return DocumentLayout.of(lengths, np.array([sentences]), place, np.zeros_like(place))


def steps(call: Callable[..., Tensor], given: List[Tensor]) -> Tuple[Callable[[], object], Callable[[], object]]:
    """Returns what computes forward, and what computes forward and backward."""
    leaves = [x.clone().requires_grad_() for x in given]
    ones = torch.ones_like(call(*given))

    def forward() -> object:
        with torch.no_grad():
            return call(*leaves)

    return forward, lambda: torch.autograd.grad(call(*leaves), leaves, ones)


def timed(call: Callable[..., Tensor], given: List[Tensor], setting: Setting, rounds: int = ROUNDS) -> Figures:
    """Returns ms and MB of both passes."""
    rounds = 2 if setting.dry else rounds
    found: Figures = {}
    for name, step in zip(("forward", "both"), steps(call, given)):
        found[f"{name} ms"] = milliseconds(step, setting.device, rounds)
        found[f"{name} MB"] = peak_memory(step, setting.device)
    return found


def dtype_of(setting: Setting) -> torch.dtype:
    """bfloat16 on a GPU; a CPU's dry run has kernels in float32."""
    return torch.bfloat16 if setting.device.type == "cuda" else torch.float32


def whole(way: str, words: int, setting: Setting) -> Figures:
    """PyTorch's attention to all words of the document."""
    shape = (1, HEADS, layout_of(words).tokens.total, DIM)
    given = [torch.randn(shape, device=setting.device, dtype=dtype_of(setting)) for _ in range(3)]
    with sdpa_kernel(WHOLE.get(way, SDPBackend.MATH)):
        return timed(F.scaled_dot_product_attention, given, setting)


def own(way: str, words: int, setting: Setting) -> Figures:
    """This package's, to the words of the 4 most relevant sentences; choosing them is part of it."""
    layout = layout_of(words).to(setting.device)
    given = inputs(layout, setting.device, dtype_of(setting))
    return timed(
        lambda *x: conditional_attention(*x, layout, KeptSentences(KEPT), kernel=way), given, setting, OWN[way]
    )


def inputs(layout: DocumentLayout, device: torch.device, dtype: torch.dtype) -> List[Tensor]:
    """Returns q, k, v, q_s [N, H, d_k] and k_s [n, H, d_k]; the last two multiples of 1/8, so that all choose alike."""
    counts = [layout.tokens.total] * 4 + [layout.tokens.rows]
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(count, HEADS, DIM, generator=generator) for count in counts]
    given[3:] = [(x * 8).round() / 8 for x in given[3:]]
    return [x.to(device, dtype) for x in given]


def error(way: str, dtype: torch.dtype, setting: Setting) -> Figures:
    """The largest error of output and gradients against the dense kernel in float64, relative to the largest value."""
    layout = layout_of(DENSE_WORDS).to(setting.device)
    rounded = inputs(layout, setting.device, dtype)

    def results(kernel: str, given: List[Tensor]) -> List[Tensor]:
        leaves = [x.clone().requires_grad_() for x in given]
        out = conditional_attention(*leaves, layout, KeptSentences(KEPT), kernel=kernel)
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.device, out.dtype)
        return [out.detach(), *torch.autograd.grad(out, leaves, weight)]

    exact = results("dense", [x.double() for x in rounded])
    names = ("output", "dq", "dk", "dv", "dq_s", "dk_s")
    found: Dict[str, float] = {}
    for name, one, right in zip(names, results(way, rounded), exact):
        found[name] = float((one.double() - right).abs().max() / right.abs().max())
    return found
