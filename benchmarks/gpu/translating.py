"""Stage ``translating``: target tokens a second of beam search with random weights, beside fairseq's transformer."""

from argparse import Namespace
from typing import Iterator

import torch

from benchmarks.gpu.data import model_arguments
from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import begin
from benchmarks.speed.generation_speed import Translator

TOKENS = (4_096, 16_384)


@STAGES.register("translating")
class Translating(Stage):
    """The reference as prefix, so that all systems write as much; beam 4."""

    minutes = 5.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        for tokens in (200,) if setting.dry else TOKENS:
            for name in ("stock", "sentence", "conditional"):
                yield f"{tokens}/{name}", lambda name=name, tokens=tokens: translated(name, tokens, setting)


def translated(name: str, tokens: int, setting: Setting) -> Figures:
    """Returns translated tokens a second; the first time of two does not count."""
    begin()
    arguments = vars(model_arguments(setting, tokens, []))
    own = Translator(name, Namespace(**arguments, beam=4, every=1))
    own.translate()
    if setting.device.type == "cuda":
        torch.cuda.synchronize()
    seconds, written = own.translate()
    return {"tokens/s": written / seconds, "seconds": seconds}
