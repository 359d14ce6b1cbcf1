"""What models that translate are computed in."""

import logging
from typing import Optional

import torch

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.packed_linear import available
from docnmt_fairseq.layers.rounding import BF16, FLOAT32, INT8, PRECISIONS
from docnmt_fairseq.native import cpu

logger = logging.getLogger(__name__)

# What models can be computed in: on GPUs the type of all states, on CPUs that of matrix products.
ON_GPU = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ON_CPU = PRECISIONS


def precision_of(ensemble: Ensemble, given: Optional[str], cuda: bool) -> str:
    """What models are computed in.

    Args:
        ensemble: the models.
        given: the precision that is wanted; None: that of an exported checkpoint, else float32.
        cuda: whether on a GPU, which has no products of int8: weights of int8 serve in any precision there.

    Raises:
        InputError: the device does not have it, or it another than an exported checkpoint's.
    """
    made_for = None if cuda and ensemble.rounded_to == INT8 else ensemble.rounded_to
    precision = given or made_for or FLOAT32
    on_device = ON_GPU if cuda else ON_CPU
    if precision not in on_device:
        raise InputError(f"--precision {precision}: {'a GPU' if cuda else 'a CPU'} has {', '.join(on_device)}")
    if made_for is not None and precision != made_for:
        raise InputError(
            f"--precision {precision}: {ensemble.paths[0]} was exported in {made_for}; leave the option out, or give "
            "the checkpoint that it was made from"
        )
    if not cuda and precision != FLOAT32 and not available(precision):
        raise InputError(f"--precision {precision}: not supported by this PyTorch build on a CPU; use float32")
    if not cuda and precision == BF16 and not cpu.capabilities().bf16:
        logger.warning("--precision bf16: no bfloat16 products on this CPU; rounded weights are multiplied in float32")
    return precision
