"""Models whose embeddings and layer norms, fairseq's own among them, add up gradients in float32."""

from typing import Any, Dict, Type

from fairseq.modules.learned_positional_embedding import LearnedPositionalEmbedding
from torch import Tensor, nn
from torch.func import functional_call

from docnmt_fairseq.layers.precision import Embedding, LayerNorm, is_half_on_cpu


class LearnedTable(LearnedPositionalEmbedding):
    """fairseq's table of positions, in float32 for half types on a CPU."""

    def forward(self, *args: Any, **options: Any) -> Tensor:
        """[..., d] of tokens [...]; see fairseq's."""
        if not is_half_on_cpu(self.weight):
            return super().forward(*args, **options)
        rows: Tensor = functional_call(self, {"weight": self.weight.float()}, args, options)
        return rows.to(self.weight.dtype)


FULL: Dict[Type[nn.Module], Type[nn.Module]] = {
    nn.Embedding: Embedding,
    nn.LayerNorm: LayerNorm,
    LearnedPositionalEmbedding: LearnedTable,
}


def accumulate_in_fp32(model: nn.Module) -> None:
    """Makes these modules of a model those that add up in float32 also where PyTorch's would not."""
    for module in model.modules():
        module.__class__ = FULL.get(type(module), type(module))
