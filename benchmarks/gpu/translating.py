"""Stage ``translating``: target tokens a second of beam search with random weights, beside fairseq's transformer."""

from argparse import Namespace
from typing import Iterator

import torch

from benchmarks.gpu.data import model_arguments
from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import begin
from benchmarks.speed.generation_speed import Translator

TOKENS, EVERY = 16_384, 4  # of a batch; one of so many batches is translated
SYSTEMS = ("stock", "sentence", "conditional")
TYPES = {"fp16": torch.float16, "fp32": torch.float32}


@STAGES.register("translating")
class Translating(Stage):
    """The reference as prefix, so that all systems write as much; beam 4, fairseq's search."""

    minutes = 5.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        for dtype in TYPES if setting.device.type == "cuda" else ("fp32",):
            for name in SYSTEMS:
                yield f"{dtype}/{name}", lambda name=name, dtype=dtype: translated(name, TYPES[dtype], setting)


def translated(name: str, dtype: torch.dtype, setting: Setting) -> Figures:
    """Returns translated tokens a second, after one batch that does not count."""
    begin()
    arguments = vars(model_arguments(setting, 200 if setting.dry else TOKENS, []))
    own = Translator(name, Namespace(**arguments, beam=4, every=1 if setting.dry else EVERY))
    own.model.to(dtype)
    batches, own.batches = own.batches, own.batches[:1]
    own.translate()
    own.batches = batches
    if setting.device.type == "cuda":
        torch.cuda.synchronize()
    seconds, written = own.translate()
    return {"tokens/s": written / seconds, "seconds": seconds}
