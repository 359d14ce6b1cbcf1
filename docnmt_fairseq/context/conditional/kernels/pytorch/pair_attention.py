"""Forward and backward equations of attention to selected sentences, for the pairs of some heads ([T] eq. 7).

The relevance R is constant inside one (token, sentence) pair, so with o_{i,s} and l_{i,s} the attention output and the
log-sum-exp of token i over the tokens of sentence s alone, out_i = Σ_s softmax_s(R_{i,s} + l_{i,s}) o_{i,s}.

The backward pass recomputes: with L_i the log-sum-exp of token i over all its tokens, P = exp(q kᵀ/√d_k + R − L) are
the weights of the whole softmax, δ = rowsum(dO ⊙ O), dS = P ⊙ (dO vᵀ − δ), dR = rowsum(dS), dq = dS k/√d_k,
dk = dSᵀ q/√d_k, dv = Pᵀ dO. Dropout multiplies P by a mask D after the softmax: dS = P ⊙ (D ⊙ dO vᵀ − δ),
dv = (P ⊙ D)ᵀ dO, δ as before.
"""

import math
from typing import Callable, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from docnmt_fairseq.context.conditional.kernels.pytorch.pair_blocks import PairBlocks

Masks = Optional[Callable[[Tensor], Tensor]]  # gives the next dropout mask, 0 or 1/(1 − p), of a tensor's shape


def forward(pairs: PairBlocks, masks: Masks, q: Tensor, k: Tensor, v: Tensor, scores: Tensor) -> Tuple[Tensor, Tensor]:
    """The output [M, H, d_v] and the log-sum-exp L [M, H].

    Args:
        pairs: of the M tokens.
        masks: dropout; None: no dropout.
        q: [M, H, d_k] queries.
        k, v: [N, H, d_k], [N, H, d_v] packed tokens.
        scores: [M, H, t] R, −∞ at places that hold none.
    """
    queries = (q * (1 / math.sqrt(q.size(-1)))).flatten(0, 1)
    output_of_pair, sum_of_pair = pairs.new_slots(v, v.size(-1)), pairs.new_slots(v)
    for blocks in pairs.by_bucket:
        logits = torch.bmm(blocks.queries(queries), blocks.transposed_keys(k))  # [b, BLOCK, w]
        hidden = blocks.hidden(logits.dtype)
        if hidden is not None:
            logits += hidden
        logs = torch.log_softmax(logits, dim=-1)
        torch.sub(logits[..., 0], logs[..., 0], out=blocks.results(sum_of_pair))  # at a token: padding comes last
        weights = logs.exp_()
        if masks is not None:
            weights *= masks(weights)
        torch.bmm(weights, blocks.keys(v), out=blocks.results(output_of_pair))
    logits = sum_of_pair.index_select(0, pairs.slot.flatten()).view_as(scores) + scores
    log_sum = logits.logsumexp(-1)
    share = (logits - log_sum.unsqueeze(-1)).exp_().flatten(0, 1)  # [M·H, t]
    output = F.embedding_bag(pairs.slot, output_of_pair, mode="sum", per_sample_weights=share)
    return output.view(*q.shape[:2], -1), log_sum


def backward(
    pairs: PairBlocks,
    masks: Masks,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scores: Tensor,
    output: Tensor,
    log_sum: Tensor,
    grad: Tensor,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of q, k, v and scores, given that of the output; the rest as in :func:`forward`."""
    scale = 1 / math.sqrt(q.size(-1))
    queries, grads, deltas = (x.flatten(0, 1) for x in (q * scale, grad, (grad * output).sum(-1)))
    bias = scores.new_full((len(pairs.query) + 1,), -torch.inf)  # R − L of every slot; slots that fill up weigh nothing
    bias[pairs.slot] = (scores - log_sum.unsqueeze(-1)).flatten(0, 1)
    q_of_pair, score_of_pair = pairs.new_slots(q, q.size(-1)), pairs.new_slots(q)
    of_k, of_v = torch.zeros_like(k), torch.zeros_like(v)
    for blocks in pairs.by_bucket:
        query, of_output = blocks.queries(queries), blocks.queries(grads)  # [b, BLOCK, d]
        logits, hidden = blocks.results(bias).unsqueeze(-1), blocks.hidden(q.dtype)
        logits = logits if hidden is None else logits + hidden
        weights = torch.baddbmm(logits, query, blocks.transposed_keys(k)).exp_()  # [b, BLOCK, w]
        of_logits = torch.bmm(of_output, blocks.transposed_keys(v))
        dropped = weights
        if masks is not None:
            mask = masks(weights)
            dropped = weights * mask
            of_logits *= mask
        of_logits.sub_(blocks.queries(deltas).unsqueeze(-1)).mul_(weights)
        torch.sum(of_logits, dim=-1, out=blocks.results(score_of_pair))
        torch.bmm(of_logits, blocks.keys(k), out=blocks.results(q_of_pair))
        blocks.sum_of_keys(torch.bmm(of_logits.transpose(1, 2), query), of_k)
        blocks.sum_of_keys(torch.bmm(dropped.transpose(1, 2), of_output), of_v)
    of_q = F.embedding_bag(pairs.slot, q_of_pair, mode="sum").view_as(q).mul_(scale)
    of_scores = score_of_pair.index_select(0, pairs.slot.flatten()).view_as(scores)
    return of_q, of_k, of_v, of_scores
