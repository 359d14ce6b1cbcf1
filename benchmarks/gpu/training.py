"""Stage ``training``: target tokens a second and peak memory of training steps, beside fairseq's own transformer."""

import time
from itertools import product
from typing import Iterator, List

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.data import model_arguments
from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage
from benchmarks.lib.machine import begin
from benchmarks.lib.systems import System

SYSTEMS = ("stock", "sentence", "conditional", "tree", "memory-3", "han")
TYPES = {
    "bf16": ["--bf16"],
    "bf16-fused": ["--bf16", "--optimizer", "fused_adamw"],  # fairseq's Adam launches some ten kernels a parameter
    "fp16": ["--fp16"],
    "fp32": [],
}
# cuDNN plans attention to padded batches anew for every shape: is that what new shapes cost?
BACKENDS = {"without-cudnn": [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]}
TOKENS = (16_384, 65_536, 4_096)
STEPS, WARMUP = 20, 5


@STAGES.register("training")
class Training(Stage):
    """Steps of forward, backward and Adam on the same random batches; first as recipes take them on a GPU."""

    minutes = 9.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        sizes = (200,) if setting.dry else TOKENS
        others = ("fp16", "fp32") if setting.device.type == "cuda" else ("fp32",)  # fairseq scales losses on GPUs alone
        cases = [(dtype, sizes[0], name) for dtype, name in product(("bf16-fused", "bf16"), SYSTEMS[:3])]
        cases += [("bf16-fused-without-cudnn", sizes[0], "stock")]
        cases += [("bf16-fused", tokens, name) for tokens in sizes[1:2] for name in SYSTEMS[:3]]
        cases += [(dtype, sizes[0], name) for dtype, name in product(others, SYSTEMS[:3])]
        cases += [("bf16", sizes[0], name) for name in SYSTEMS[3:]]
        cases += [("bf16", tokens, name) for tokens in sizes[1:] for name in SYSTEMS]
        for dtype, tokens, name in cases:
            measure = lambda dtype=dtype, tokens=tokens, name=name: by_backends(name, dtype, tokens, setting)  # noqa: E731
            yield f"{dtype}/{tokens}/{name}", measure


def by_backends(name: str, dtype: str, tokens: int, setting: Setting) -> Figures:
    """Returns what :func:`trained` does, with those backends of attention alone that the type's name may end in."""
    for ending, backends in BACKENDS.items():
        if dtype.endswith(ending):
            with sdpa_kernel(backends):
                return trained(name, dtype[: -len(ending) - 1], tokens, setting)
    return trained(name, dtype, tokens, setting)


def system(name: str, options: List[str], tokens: int, setting: Setting) -> System:
    """A system to train, its libraries silent."""
    begin()
    return System(name, model_arguments(setting, tokens, options))


def trained(name: str, dtype: str, tokens: int, setting: Setting) -> Figures:
    """Returns target tokens a second, milliseconds a step and peak MB.

    Batches are collated beforehand: in training, processes beside the step do it. All are trained on once before: a
    padded batch of a new shape costs several times as much, while its kernels are chosen and loaded; what is
    ``first`` is of that pass.

    Args:
        name: of the system.
        dtype: of ``TYPES``.
        tokens: of a batch.
        setting: where.
    """
    own = system(name, TYPES[dtype], tokens, setting)
    warmup, count = (1, 2) if setting.dry else (WARMUP, STEPS)
    for sample in own.samples(0, warmup):
        own.step(sample)
    device = setting.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    first = seconds_of(own, list(own.samples(warmup, count)))
    samples = list(own.samples(warmup, count))
    seconds = seconds_of(own, samples)
    target = sum(own.target_tokens(sample) for sample in samples)
    peak = torch.cuda.max_memory_allocated() / 1e6 if device.type == "cuda" else 0.0
    milliseconds = {"ms a step": 1000 * seconds / count, "first ms": 1000 * first / count}
    return {"tokens/s": target / seconds, "first tokens/s": target / first, **milliseconds, "MB": peak}


def seconds_of(own: System, samples: List[dict]) -> float:
    """Trains on batches; returns the seconds until the device is done with all."""
    begun = time.perf_counter()
    for sample in samples:
        own.step(sample, wait=sample is samples[-1])
    return time.perf_counter() - begun
