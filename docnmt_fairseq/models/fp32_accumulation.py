"""Embeddings and layer norms, including fairseq's, whose gradients accumulate in float32 on CPUs in half precision."""

from typing import Any, Dict, Type

from fairseq.modules.learned_positional_embedding import LearnedPositionalEmbedding
from torch import Tensor, nn
from torch.func import functional_call

from docnmt_fairseq.layers.precision import Embedding, LayerNorm, is_half_on_cpu


class LearnedTable(LearnedPositionalEmbedding):
    """fairseq's learned positions, computed in float32 for half precision on CPUs."""

    def forward(self, *args: Any, **options: Any) -> Tensor:
        """Embeddings [..., d] of tokens [...]."""
        if not is_half_on_cpu(self.weight):
            return super().forward(*args, **options)
        rows: Tensor = functional_call(self, {"weight": self.weight.float()}, args, options)
        return rows.to(self.weight.dtype)


REPLACEMENTS: Dict[Type[nn.Module], Type[nn.Module]] = {
    nn.Embedding: Embedding,
    nn.LayerNorm: LayerNorm,
    LearnedPositionalEmbedding: LearnedTable,
}


def accumulate_in_fp32(model: nn.Module) -> None:
    """Replaces the classes of a model's embeddings and layer norms by those that accumulate in float32."""
    for module in model.modules():
        module.__class__ = REPLACEMENTS.get(type(module), type(module))
