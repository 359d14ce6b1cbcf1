"""Weights in fewer bits: what of a model is rounded, and how; what is rounded once stays as it is.

A weight [n, w] in int8 has a scale for each row. Scales have 17 significant bits, so that a scale times any integer up
to 127 is exact in float32: weights that were rounded, wherever they were kept since, give the same integers and scales.
"""

from typing import Dict, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.precision import Embedding

FLOAT32, BF16, INT8 = PRECISIONS = ("float32", "bf16", "int8")
LARGEST = 127  # integers are symmetric, so that zero is one of them
SPARE = 7  # of the 24 significant bits of a float32, which are left to the integers
TABLES = (nn.Embedding, Embedding)  # not their subclasses: positions are few, and of their own


def int8_rows(weight: Tensor) -> Tuple[Tensor, Tensor]:
    """Integers [n, w] and positive scales [n], whose products are nearest to a weight [n, w] of float32."""
    scales = weight.abs().amax(1).clamp(min=1e-12) / LARGEST
    spare = (1 << SPARE) - 1
    scales = ((scales.view(torch.int32) + spare) & ~spare).view(torch.float32)  # up: the largest element fits in
    integers = (weight / scales[:, None]).round().clamp(-LARGEST, LARGEST).to(torch.int8)
    return integers, scales


def rounded(weight: Tensor, precision: str) -> Tensor:
    """What a weight [n, w] of float32 is in a precision of ``PRECISIONS``, in float32."""
    if precision == INT8:
        integers, scales = int8_rows(weight)
        return integers.float() * scales[:, None]
    return weight.bfloat16().float() if precision == BF16 else weight


def weights_to_round(model: nn.Module) -> Dict[str, nn.Parameter]:
    """The weights of linear maps and of tables of tokens by their names; a shared one has several."""
    return {
        f"{name}.weight": module.weight
        for name, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, nn.Linear) or type(module) in TABLES
    }


def round_weights(model: nn.Module, precision: str) -> None:
    """Rounds these weights of a model of float32 that is trained no more, in place."""
    if precision == FLOAT32:
        return
    with torch.no_grad():
        for weight in {id(weight): weight for weight in weights_to_round(model).values()}.values():
            weight.copy_(rounded(weight, precision))
