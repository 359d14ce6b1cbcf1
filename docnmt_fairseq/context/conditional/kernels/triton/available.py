"""Whether Triton is here, and where its programs can run."""

import functools
import importlib.util
import os
from typing import Optional

import torch

LEAST_CAPABILITY = (8, 0)  # bfloat16 in matrix units: Ampere and later
HALF_TYPES = (torch.bfloat16, torch.float16)


@functools.cache
def missing() -> Optional[str]:
    """Why Triton's programs cannot be had on this machine, None where they can."""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed"
    return None


def interpreted() -> bool:
    """Whether Triton's interpreter stands in for a GPU: programs run on the CPU, slowly, for tests."""
    return os.environ.get("TRITON_INTERPRET", "") in ("1", "true", "on")


def runs_on(device: torch.device) -> bool:
    """Whether Triton's programs run on tensors of a device: a GPU of NVIDIA's, Ampere or later."""
    if missing() is not None:
        return False
    if interpreted():
        return device.type == "cpu"
    if device.type != "cuda" or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(device) >= LEAST_CAPABILITY
