"""Low-rank updates of linear maps (LoRA, Hu et al. 2021): W + (α/r) B A, of which only A and B are trained.

Names and initial values are those of ``peft``: A is Kaiming-uniform, B zero, so that training begins at the map as it
is.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PARAMETERS = ("lora_A", "lora_B")


class LoRALinear(nn.Linear):
    """W x + b + (α/r) B A dropout(x): a linear map whose weight rests; made of one by :func:`add_lora`.

    The weight and the bias keep their names. Nothing is merged until :meth:`merge`, so that a validation leaves a
    training as it was.

    Attributes:
        lora_A: [r, in].
        lora_B: [out, r].
        scale: α/r.
        dropout: probability of dropping an input of A, in training.
    """

    lora_A: nn.Parameter
    lora_B: nn.Parameter
    scale: float
    dropout: float

    def forward(self, input: Tensor) -> Tensor:
        """[..., out] of [..., in]."""
        narrow = F.linear(F.dropout(input, self.dropout, self.training), self.lora_A)  # [..., r]
        return torch.add(super().forward(input), F.linear(narrow, self.lora_B), alpha=self.scale)

    def merged_weight(self) -> Tensor:
        """W + (α/r) B A, [out, in], computed in float32 at least and rounded once."""
        computing = torch.promote_types(self.weight.dtype, torch.float32)
        weight, a, b = (part.detach().to(computing) for part in (self.weight, self.lora_A, self.lora_B))
        return torch.addmm(weight, b, a, alpha=self.scale).to(self.weight.dtype)

    def merge(self) -> None:
        """Becomes the linear map with that weight, which is trained no more as this one was."""
        with torch.no_grad():
            self.weight.copy_(self.merged_weight())
        for name in (*PARAMETERS, "scale", "dropout"):
            delattr(self, name)
        self.__class__ = nn.Linear  # type: ignore[assignment]

    def make_generation_fast_(self, **unused: object) -> None:
        """:meth:`merge`; fairseq asks all modules for this when a model is to be trained no more."""
        self.merge()


def add_lora(linear: nn.Linear, rank: int, alpha: float, dropout: float = 0.0) -> None:
    """Lets a low-rank update of a linear map be trained in the place of its weight.

    Args:
        linear: PyTorch's own, no subclass; changed in place.
        rank: r.
        alpha: α; the update is multiplied by α/r.
        dropout: probability of dropping an input of the update.
    """
    assert type(linear) is nn.Linear
    weight = linear.weight.requires_grad_(False)
    linear.__class__ = LoRALinear
    linear.lora_A = nn.Parameter(weight.new_empty(rank, linear.in_features))
    linear.lora_B = nn.Parameter(weight.new_zeros(linear.out_features, rank))
    nn.init.kaiming_uniform_(linear.lora_A, a=math.sqrt(5))
    linear.scale, linear.dropout = alpha / rank, dropout  # type: ignore[assignment]  # no parameters


def weight_of(linear: nn.Linear) -> Tensor:
    """The weight [out, in] that a linear map multiplies by, with its update if it has one; no gradients."""
    return linear.merged_weight() if isinstance(linear, LoRALinear) else linear.weight.detach()


def merge_lora(model: nn.Module) -> None:
    """Merges all updates of a model that is trained no more; it then costs what it would cost without."""
    for module in model.modules():
        if isinstance(module, LoRALinear):
            module.merge()
