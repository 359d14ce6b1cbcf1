"""Stage ``hardware``: versions, and how fast the GPU copies and multiplies, which bounds all other figures."""

import platform
import subprocess
from typing import Iterator

import torch

from benchmarks.gpu.stage import STAGES, Figures, Point, Setting, Stage, milliseconds

HALVES = (torch.bfloat16, torch.float16)


@STAGES.register("hardware")
class Hardware(Stage):
    """Copies of 1 GB, products of 8,192 × 8,192 matrices."""

    minutes = 2.0

    def points(self, setting: Setting) -> Iterator[Point]:
        """See :class:`Stage`."""
        yield "versions", lambda: versions(setting)
        yield "copies", lambda: copies(setting)
        for dtype in (torch.float32, *HALVES):
            yield f"products/{name_of(dtype)}", lambda dtype=dtype: products(setting, dtype, tensor_cores=False)
        yield "products/tf32", lambda: products(setting, torch.float32, tensor_cores=True)


def name_of(dtype: torch.dtype) -> str:
    """What a type is called in tables."""
    return str(dtype).removeprefix("torch.")


def versions(setting: Setting) -> Figures:
    """Of all that decides what is measured."""
    found = {"python": platform.python_version(), "torch": torch.__version__, "cuda": torch.version.cuda}
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        found["triton"] = None
    if setting.device.type == "cuda":
        found["capability"] = ".".join(map(str, torch.cuda.get_device_capability()))
        query = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
        found["driver"] = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return found


def copies(setting: Setting) -> Figures:
    """GB a second: within the device (read and written), and to it from pinned and from pageable memory."""
    size = 10**6 if setting.dry else 2**30
    device, rounds = setting.device, 3 if setting.dry else 20
    there, other = (torch.empty(size, dtype=torch.uint8, device=device) for _ in range(2))
    here = torch.empty(size, dtype=torch.uint8)
    found = {"within": 2 * size / 1e6 / milliseconds(lambda: other.copy_(there), device, rounds)}
    found["from pageable"] = size / 1e6 / milliseconds(lambda: there.copy_(here), device, rounds)
    if device.type == "cuda":
        pinned = here.pin_memory()
        found["from pinned"] = size / 1e6 / milliseconds(lambda: there.copy_(pinned, non_blocking=True), device, rounds)
    return found


def products(setting: Setting, dtype: torch.dtype, tensor_cores: bool) -> Figures:
    """TFLOP/s of a product of square matrices.

    Args:
        setting: where.
        dtype: of the matrices.
        tensor_cores: whether float32 may be rounded to TF32.
    """
    width = 256 if setting.dry else 8192
    a, b = (torch.randn(width, width, device=setting.device).to(dtype) for _ in range(2))
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if tensor_cores else "highest")
    try:
        time = milliseconds(lambda: a @ b, setting.device, 3 if setting.dry else 20)
    finally:
        torch.set_float32_matmul_precision(before)
    return {"TFLOP/s": 2 * width**3 / 1e9 / time}
