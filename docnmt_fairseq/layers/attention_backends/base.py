"""The contract of backends of attention between packed rows, and their registry."""

from typing import Optional

from torch import Tensor

from docnmt_fairseq.batch.attention_plan import AttentionPlan
from docnmt_fairseq.registry import Registry


class AttentionBackend:
    """Contract: all backends give the same results, but for rounding and which weights are dropped."""

    def serves(self, q: Tensor, k: Tensor, v: Tensor) -> bool:
        """Whether the backend can compute on such tensors here."""
        raise NotImplementedError

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, plan: AttentionPlan, dropout: float, scale: Optional[float]
    ) -> Tensor:
        """softmax(q kᵀ · scale) v of every row by itself: [queries of the plan, H, d_v].

        Args:
            q: [N_q, H, d_k] packed queries.
            k: [N_k, H, d_k] packed keys.
            v: [N_k, H, d_v] packed values.
            plan: which queries see which keys.
            dropout: probability of dropping an attention weight.
            scale: default 1/√d_k.
        """
        raise NotImplementedError


ATTENTION_BACKENDS: Registry[AttentionBackend] = Registry("attention backend")
