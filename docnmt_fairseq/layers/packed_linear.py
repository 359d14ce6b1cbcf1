"""Linear maps whose weights are laid out once as a CPU's matrix products read them: up to twice as fast."""

from typing import Optional

import torch
from torch import Tensor, nn


def available() -> bool:
    """Whether this PyTorch has oneDNN's products of packed weights."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class PackedLinear(nn.Linear):
    """PyTorch's, for inference on a CPU; in training, or of other types and devices, just that.

    Attributes:
        packed: the weight [out, in] in oneDNN's layout; None: not packed.
        version: of the weight that is packed.
    """

    packed: Optional[Tensor] = None
    version = -1

    def pack(self) -> None:
        """Lays the weight out; once it changes, what is packed serves no more."""
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach().contiguous())
        self.version = self.weight._version

    def forward(self, input: Tensor) -> Tensor:
        """[..., out] of [..., in]."""
        packed = self.packed
        stale = packed is None or self.version != self.weight._version
        if packed is None or stale or torch.is_grad_enabled() or input.dtype != packed.dtype:
            return super().forward(input)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(input, packed, self.bias, "none", [], "")
        return product


def pack_linears(model: nn.Module) -> None:
    """Packs all linear maps of a model that is trained no more, where that is possible; it keeps its parameters."""
    if not available():
        return
    for module in model.modules():
        if type(module) is nn.Linear and module.weight.device.type == "cpu" and module.weight.dtype == torch.float32:
            module.__class__ = PackedLinear
            module.pack()  # type: ignore[operator]
