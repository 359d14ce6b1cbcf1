"""Linear maps for inference on CPUs: weights laid out once as matrix products read them, perhaps in fewer bits.

Packed float32 weights make products up to twice as fast, bfloat16 again twice where the processor has it; with int8 the
weights have a scale for each output, and what they are multiplied with one for each row, found anew for each product.
(With one for all rows the largest decides how precise the others are: twice the error.) What is in between stays in
float32.
"""

import warnings
from typing import Any, Optional

import torch
from torch import Tensor, nn

from docnmt_fairseq.layers.rounding import BF16, FLOAT32, INT8, int8_rows


def available(precision: str) -> bool:
    """Whether this PyTorch has products of packed weights of that precision."""
    if precision == INT8:
        return hasattr(torch, "_make_per_channel_quantized_tensor") and any(
            engine in torch.backends.quantized.supported_engines for engine in ("onednn", "fbgemm")
        )
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class PackedLinear(nn.Linear):
    """PyTorch's, for inference on a CPU; in training, or of other types and devices, just that.

    Attributes:
        packed: the weight [out, in] in the layout of its kind of product; None: not packed.
        precision: of the product.
        version: of the weight that is packed.
    """

    packed: Optional[Any] = None
    precision = FLOAT32
    version = -1
    packed_bias: Optional[Tensor] = None

    def pack(self, precision: str = FLOAT32) -> None:
        """Lays the weight out; once it changes, what is packed serves no more."""
        weight = self.weight.detach().contiguous()
        self.precision, self.version = precision, self.weight._version
        self.packed_bias = None if self.bias is None else self.bias.detach()
        if precision == INT8:
            self.packed = packed_int8(weight)
            return
        computing = torch.bfloat16 if precision == BF16 else torch.float32
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(computing))
        self.packed_bias = None if self.packed_bias is None else self.packed_bias.to(computing)

    def forward(self, input: Tensor) -> Tensor:
        """[..., out] of [..., in]."""
        packed = self.packed
        stale = packed is None or self.version != self.weight._version
        if stale or torch.is_grad_enabled() or input.dtype != torch.float32:
            return super().forward(input)
        product: Tensor
        if self.precision == INT8:
            rows = input.abs().amax(-1, keepdim=True).clamp_(min=1e-12)  # PyTorch's own scale is then one for all rows
            product = torch.ops.quantized.linear_dynamic(input / rows, packed, not has_dot_products())
            if self.packed_bias is None:
                return product.mul_(rows)
            return torch.addcmul(self.packed_bias, product, rows, out=product)
        computing = torch.bfloat16 if self.precision == BF16 else torch.float32
        product = torch.ops.mkldnn._linear_pointwise(input.to(computing), packed, self.packed_bias, "none", [], "")
        return product.float()


def packed_int8(weight: Tensor) -> Any:
    """A weight [out, in] in int8, one scale for each output, as PyTorch's dynamic products take it."""
    integers, scales = int8_rows(weight)
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's plans for such tensors, which only carry the weight to its layout
        quantised = torch._make_per_channel_quantized_tensor(integers, scales.double(), zeros, 0)
    engine = torch.backends.quantized.engine
    wanted = "onednn" if "onednn" in torch.backends.quantized.supported_engines else "fbgemm"
    try:
        torch.backends.quantized.engine = wanted if has_dot_products() else "fbgemm"
        return torch.ops.quantized.linear_prepack(quantised, None)
    finally:
        torch.backends.quantized.engine = engine


def has_dot_products() -> bool:
    """Whether the processor adds up products of int8 without overflow (VNNI); else seven bits are used of eight."""
    return bool(torch.cpu._is_vnni_supported())


def pack_linears(model: nn.Module, precision: str = FLOAT32) -> None:
    """Packs all linear maps of a model that is trained no more, where that is possible; it keeps its parameters.

    Args:
        model: of float32; on other devices than a CPU nothing is done.
        precision: one of ``rounding.PRECISIONS``.
    """
    if not available(precision):
        return
    for module in model.modules():
        if type(module) not in (nn.Linear, PackedLinear):
            continue
        if module.weight.device.type == "cpu" and module.weight.dtype == torch.float32:
            module.__class__ = PackedLinear
            module.pack(precision)  # type: ignore[operator]
