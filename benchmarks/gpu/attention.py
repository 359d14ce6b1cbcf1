"""Stage ``attention``: conditional attention compared with PyTorch's attention to the whole document."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage, milliseconds, peak_memory
from benchmarks.speed.conditional_attention import WORDS as WORDS_PER_SENTENCE
from benchmarks.speed.conditional_attention import attention, document, errors, inputs
from docnmt_fairseq.batch.layout import DocumentLayout
from docnmt_fairseq.context.conditional.kernels import KERNELS

TOP_T = 4
WORDS = (2_048, 8_192, 32_768, 131_072)
WHOLE = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
ROUNDS = {"triton": 15, "torch": 5}
DENSE_WORDS = 300  # document for the dense kernel in float64


@STAGES.register("attention")
class Attention(Stage):
    """Errors, then forward, and forward and backward, of one call with 8 heads of width 64, t = 4."""

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        cuda = setting.device.type == "cuda"
        main = torch.bfloat16 if cuda else torch.float32
        kernels = [name for name in ROUNDS if name in KERNELS and KERNELS[name].serves(setting.device, main)]
        for kernel in kernels:
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                name = f"error/{kernel}/{str(dtype).removeprefix('torch.')}"
                yield name, lambda kernel=kernel, dtype=dtype: error(kernel, dtype, setting)
        for words in (128, 256) if setting.dry else WORDS:
            for way in WHOLE if cuda else ("math",):
                yield f"{words}/{way}", lambda way=way, words=words: timed(way, words, main, setting)
            for kernel in kernels if words < max(WORDS) else kernels[:1]:  # the second is slow there
                yield f"{words}/{kernel}", lambda way=kernel, words=words: timed(way, words, main, setting)


def layout_of(words: int, setting: Setting) -> DocumentLayout:
    """Returns a document on the device."""
    return document(words, max(2, words // WORDS_PER_SENTENCE)).to(setting.device)


def error(kernel: str, dtype: torch.dtype, setting: Setting) -> Figures:
    """Returns the errors of output and gradients relative to the dense kernel in float64."""
    return errors(kernel, layout_of(DENSE_WORDS, setting), TOP_T, dtype, setting.device.type)


def timed(way: str, words: int, dtype: torch.dtype, setting: Setting) -> Figures:
    """Returns milliseconds and MB of forward, and of forward and backward."""
    layout, whole = layout_of(words, setting), way not in ROUNDS
    given = [x.to(setting.device, dtype).requires_grad_() for x in inputs(layout, flash=whole)]
    call: Callable[..., Tensor] = F.scaled_dot_product_attention if whole else attention(way, layout, TOP_T)
    with sdpa_kernel(WHOLE.get(way, SDPBackend.MATH)) if whole else torch.enable_grad():
        ones = torch.ones_like(call(*given))

        def forward() -> object:
            with torch.no_grad():
                return call(*given)

        found, rounds = {}, 2 if setting.dry else ROUNDS.get(way, 15)
        steps = {"forward": forward, "both": lambda: torch.autograd.grad(call(*given), given, ones)}
        for name, step in steps.items():
            found[f"{name} ms"] = milliseconds(step, setting.device, rounds)
            found[f"{name} MB"] = peak_memory(step, setting.device)
    return found
