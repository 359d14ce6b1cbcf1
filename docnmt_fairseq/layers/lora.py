"""Low-rank adaptation of linear layers (LoRA, Hu et al. 2021): W + (α/r) B A with frozen W.

Names and initial values are those of ``peft``: A is Kaiming-uniform, B zero, so that training starts from the original
layer.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PARAMETERS = ("lora_A", "lora_B")


class LoRALinear(nn.Linear):
    """W x + b + (α/r) B A dropout(x) with a frozen W; :func:`add_lora` converts a linear layer to it.

    Weight and bias keep their names. Updates stay separate until :meth:`merge`, so that validation does not affect
    training.

    Attributes:
        lora_A: [r, in].
        lora_B: [out, r].
        scale: α/r.
        dropout: dropout probability of A's inputs in training.
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
        """W + (α/r) B A, [out, in], computed in float32 or float64 and rounded once."""
        computing = torch.promote_types(self.weight.dtype, torch.float32)
        weight, a, b = (part.detach().to(computing) for part in (self.weight, self.lora_A, self.lora_B))
        return torch.addmm(weight, b, a, alpha=self.scale).to(self.weight.dtype)

    def merge(self) -> None:
        """Converts the layer in place to an ordinary linear layer with the merged weight."""
        with torch.no_grad():
            self.weight.copy_(self.merged_weight())
        for name in (*PARAMETERS, "scale", "dropout"):
            delattr(self, name)
        self.__class__ = nn.Linear  # type: ignore[assignment]

    def make_generation_fast_(self, **unused: object) -> None:
        """:meth:`merge`; called by fairseq before inference."""
        self.merge()


def add_lora(linear: nn.Linear, rank: int, alpha: float, dropout: float = 0.0) -> None:
    """Freezes a linear layer and adds a trained low-rank update.

    Args:
        linear: an ``nn.Linear``, not a subclass; converted in place.
        dropout: dropout probability of the update's inputs.
    """
    assert type(linear) is nn.Linear
    weight = linear.weight.requires_grad_(False)
    linear.__class__ = LoRALinear
    linear.lora_A = nn.Parameter(weight.new_empty(rank, linear.in_features))
    linear.lora_B = nn.Parameter(weight.new_zeros(linear.out_features, rank))
    nn.init.kaiming_uniform_(linear.lora_A, a=math.sqrt(5))
    linear.scale, linear.dropout = alpha / rank, dropout  # type: ignore[assignment]


def weight_of(linear: nn.Linear) -> Tensor:
    """Effective weight [out, in] of a linear layer, including its update; without gradient."""
    return linear.merged_weight() if isinstance(linear, LoRALinear) else linear.weight.detach()


def merge_lora(model: nn.Module) -> None:
    """Merges all low-rank updates of a model for inference."""
    for module in model.modules():
        if isinstance(module, LoRALinear):
            module.merge()
