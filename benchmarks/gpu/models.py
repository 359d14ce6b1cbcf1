"""Stages ``training``, ``stalls`` and ``translating``: models of base size compared with fairseq's transformer."""

import logging
import time
import traceback
import warnings
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from itertools import product

import torch

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.reporting import ROOT
from benchmarks.lib.systems import System
from benchmarks.speed.generation_speed import Translator

BASE, TINY = {"layers": 6, "width": 512, "ffn": 2048, "heads": 8}, {"layers": 2, "width": 16, "ffn": 16, "heads": 2}
SYSTEMS = ("stock", "sentence", "conditional", "tree", "memory-3", "han")
TYPES = {"bf16": ["--bf16"], "bf16-fused": ["--bf16", "--optimizer", "fused_adamw"], "fp16": ["--fp16"], "fp32": []}
TOKENS, STEPS, WARMUP = (16_384, 65_536, 4_096), 20, 5
TRANSLATE_TYPES = {"fp16": torch.float16, "fp32": torch.float32}


def arguments(setting: Setting, tokens: int, more: list[str]) -> Namespace:
    """Returns options of :mod:`benchmarks.lib.systems`: a model of base size, tiny in a dry run."""
    data = setting.text() / "data" / "data-bin"
    logging.disable(logging.INFO)
    more = [*more, "--share-all-embeddings"]
    sizes = TINY if setting.dry else BASE
    device = setting.device.type
    return Namespace(data_bin=str(data), max_tokens=tokens, dropout=0.1, seed=1, device=device, more=more, **sizes)


@STAGES.register("training")
class Training(Stage):
    """Steps of forward, backward and Adam on the same random batches."""

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        sizes = (200,) if setting.dry else TOKENS
        others = ("fp16", "fp32") if setting.device.type == "cuda" else ("fp32",)
        cases = [(dtype, sizes[0], name) for dtype, name in product(("bf16-fused", "bf16"), SYSTEMS[:3])]
        cases += [("bf16-fused", tokens, name) for tokens in sizes[1:2] for name in SYSTEMS[:3]]
        cases += [(dtype, sizes[0], name) for dtype, name in product(others, SYSTEMS[:3])]
        cases += [("bf16", sizes[0], name) for name in SYSTEMS[3:]]
        cases += [("bf16", tokens, name) for tokens in sizes[1:] for name in SYSTEMS]
        for dtype, tokens, name in cases:
            yield f"{dtype}/{tokens}/{name}", lambda case=(name, dtype, tokens): train(*case, setting)


def train(name: str, dtype: str, tokens: int, setting: Setting) -> Figures:
    """Returns target tokens per second, milliseconds per step and peak MB.

    All batches are trained on twice, since a padded batch of a new shape takes longer; ``first`` is the first time.

    Args:
        name: system.
        dtype: key of ``TYPES``.
        tokens: tokens of a batch.
        setting: configuration.
    """
    system = System(name, arguments(setting, tokens, TYPES[dtype]))
    warmup, count = (1, 2) if setting.dry else (WARMUP, STEPS)
    for sample in system.samples(0, warmup):
        system.step(sample)
    cuda = setting.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    first, seconds = (seconds_of(system, list(system.samples(warmup, count))) for _ in range(2))
    target = sum(system.target_tokens(sample) for sample in system.samples(warmup, count))
    times = {"ms per step": 1000 * seconds / count, "first ms": 1000 * first / count}
    peak = torch.cuda.max_memory_allocated() / 1e6 if cuda else 0.0
    return {"tokens/s": target / seconds, "first tokens/s": target / first, **times, "MB": peak}


def seconds_of(system: System, samples: list[dict]) -> float:
    """Returns the seconds of training on batches."""
    begin = time.perf_counter()
    for sample in samples:
        system.step(sample, wait=sample is samples[-1])
    return time.perf_counter() - begin


@STAGES.register("stalls")
class Stalls(Stage):
    """Places at which a training step waits for the GPU."""

    minutes = 4.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        for name in SYSTEMS:
            yield f"waits/{name}", lambda name=name: waits(name, setting)


def waits(name: str, setting: Setting) -> Figures:
    """Returns how often a step waits for the GPU, by line of this package or fairseq."""
    system = System(name, arguments(setting, 200 if setting.dry else 4096, TYPES["bf16"]))
    first, second = system.samples(0, 2)
    system.step(first)
    places: Counter[str] = Counter()
    cuda = setting.device.type == "cuda"

    def note(message: object, *_: object, **__: object) -> None:
        if "synchroniz" in str(message):
            places[place(traceback.extract_stack()[:-1])] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        previous, warnings.showwarning = warnings.showwarning, note
        try:
            if cuda:
                torch.cuda.set_sync_debug_mode("warn")
            system.step(second, wait=False)
        finally:
            warnings.showwarning = previous
            if cuda:
                torch.cuda.set_sync_debug_mode("default")
    return {"waits": sum(places.values()), "places": dict(places.most_common())}


def place(stack: list[traceback.FrameSummary]) -> str:
    """Returns the innermost line that is not part of PyTorch."""
    own = (
        frame for frame in reversed(stack) if "/torch/" not in frame.filename and "warnings.py" not in frame.filename
    )
    return next((f"{frame.filename.removeprefix(f'{ROOT}/')}:{frame.lineno}" for frame in own), "PyTorch")


@STAGES.register("translating")
class Translating(Stage):
    """Beam search of fairseq-generate with the reference as prefix, beam 4."""

    minutes = 5.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """Yields names and measuring functions."""
        for dtype in TRANSLATE_TYPES if setting.device.type == "cuda" else ("fp32",):
            for name in SYSTEMS[:3]:
                yield f"{dtype}/{name}", lambda case=(name, dtype): translate(*case, setting)


def translate(name: str, dtype: str, setting: Setting) -> Figures:
    """Returns translated tokens per second, after one batch of warm-up."""
    options = vars(arguments(setting, 200 if setting.dry else TOKENS[0], []))
    own = Translator(name, Namespace(**options, beam=4, every=1 if setting.dry else 4))
    own.model.to(TRANSLATE_TYPES[dtype])
    batches, own.batches = own.batches, own.batches[:1]
    own.translate()
    own.batches = batches
    if setting.device.type == "cuda":
        torch.cuda.synchronize()
    seconds, tokens = own.translate()
    return {"tokens/s": tokens / seconds, "seconds": seconds}
