"""Linear layers for inference on CPUs: weights packed once in the layout of matrix products, in float32, bf16 or int8.

Packed float32 weights make products up to twice as fast. Processors with bfloat16 products double that in bf16; on the
others, weights are rounded and multiplied in float32. int8 weights have one scale per output, their inputs one scale
per row, computed for each product: with a common scale the largest row would decide the precision of all others.
Everything between the products stays in float32.
"""

import warnings
from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.precision import Embedding
from docnmt_fairseq.native import cpu

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
    """Returns a weight [n, w] of float32 rounded to a precision of ``PRECISIONS``, in float32."""
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


def available(precision: str) -> bool:
    """Returns whether models can be computed with packed weights of a precision on this CPU."""
    return cpu.capabilities().int8_engine is not None if precision == INT8 else cpu.capabilities().packed_float32


class PackedLinear(nn.Linear):
    """Linear layer for inference in float32 on a CPU; with gradients, other types or devices it is ``nn.Linear``.

    Attributes:
        packed: weight [out, in] in the layout of its precision; None: not packed.
        packed_bias: bias [out] in the type of the product.
        precision: one of ``PRECISIONS``.
        version: version counter of the packed weight; a changed weight is not taken from the packed copy.
    """

    packed: Optional[Any] = None
    packed_bias: Optional[Tensor] = None
    precision = FLOAT32
    version = -1

    def pack(self, precision: str = FLOAT32) -> None:
        """Packs the weight, until it changes."""
        weight = self.weight.detach().contiguous()
        self.precision, self.version = precision, self.weight._version
        self.packed_bias = None if self.bias is None else self.bias.detach()
        if precision == INT8:
            self.packed = _packed_int8(weight)
            return
        if precision == BF16:
            weight = weight.bfloat16()
        computing = _computing_type(precision)
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(computing))
        self.packed_bias = None if self.packed_bias is None else self.packed_bias.to(computing)

    def forward(self, input: Tensor) -> Tensor:
        """Maps [..., in] to [..., out]."""
        packed = self.packed
        stale = packed is None or self.version != self.weight._version
        if stale or torch.is_grad_enabled() or input.dtype != torch.float32:
            return super().forward(input)
        product: Tensor
        if self.precision == INT8:
            scales = input.abs().amax(-1, keepdim=True).clamp_(min=1e-12)  # PyTorch's own scale then fits all rows
            reduce_range = not cpu.capabilities().int8_dot_products
            product = torch.ops.quantized.linear_dynamic(input / scales, packed, reduce_range)
            if self.packed_bias is None:
                return product.mul_(scales)
            return torch.addcmul(self.packed_bias, product, scales, out=product)
        computing = _computing_type(self.precision)
        product = torch.ops.mkldnn._linear_pointwise(input.to(computing), packed, self.packed_bias, "none", [], "")
        return product.float()


def _computing_type(precision: str) -> torch.dtype:
    return torch.bfloat16 if precision == BF16 and cpu.capabilities().bf16 else torch.float32


def _packed_int8(weight: Tensor) -> Any:
    """Weight [out, in] in int8 with one scale per output, as PyTorch's dynamic products take it."""
    integers, scales = int8_rows(weight)
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such tensors are deprecated; here they only carry the weight to its layout
        quantised = torch._make_per_channel_quantized_tensor(integers, scales.double(), zeros, 0)
    engine = torch.backends.quantized.engine
    try:
        torch.backends.quantized.engine = cpu.capabilities().int8_engine  # type: ignore[assignment]
        return torch.ops.quantized.linear_prepack(quantised, None)
    finally:
        torch.backends.quantized.engine = engine


def pack_linears(model: nn.Module, precision: str = FLOAT32) -> None:
    """Packs all linear layers of a model for inference where that is possible; the parameters stay.

    Args:
        model: in float32; layers on other devices than a CPU are left alone.
    """
    if not available(precision):
        return
    for module in model.modules():
        if type(module) not in (nn.Linear, PackedLinear):
            continue
        if module.weight.device.type == "cpu" and module.weight.dtype == torch.float32:
            module.__class__ = PackedLinear
            module.pack(precision)  # type: ignore[operator]
