"""Scaled dot-product attention of words to keys that all of them share, where each word sees some of them."""

import torch.nn.functional as F
from torch import Tensor


def masked_attention(q: Tensor, k: Tensor, v: Tensor, sight: Tensor, dropout: float = 0.0) -> Tensor:
    """Returns softmax(q kᵀ/√d_k) v over what each word sees, [T] eq. 1: [M, H, d_v].

    One product for all documents of a batch, masked: the words are the few that a step of the search adds, and to
    sort them by document would cost more than is wasted.

    Args:
        q: [M, H, d_k] queries.
        k: [R, H, d_k] keys.
        v: [R, H, d_v] values.
        sight: [M, R] True where a query sees a key; every query sees one at least.
        dropout: probability of dropping an attention weight, 0 outside training.
    """
    q, k, v = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))  # [1, H, M or R, ...]
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=sight, dropout_p=dropout)
    return output.squeeze(0).transpose(0, 1)
