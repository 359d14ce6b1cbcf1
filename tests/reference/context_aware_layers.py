"""[Z] eq. 19-20, 38-42, one input, one patch, one symbol after another."""

import math
from typing import List, Sequence

import torch
from torch import Tensor

from docnmt_fairseq.batch.ragged import Ragged


def mixture(score: Tensor, v: Tensor, w: Tensor) -> Tensor:
    """χ v + (1 − χ) w, χ = 1/(1 + e^−score) (eq. 12, 19)."""
    chi = 1 / (1 + torch.exp(-score))
    return chi * v + (1 - chi) * w


def layer(c: Tensor, v, score, default: Tensor) -> Tensor:
    """CA-NN of each row of c [N, d] (eq. 38-39)."""
    return torch.stack([mixture(score.weight[0] @ x + score.bias[0], v(x), default) for x in c])


def residual(c: Tensor, block) -> Tensor:
    """CA-RES of each row of c, its layers one after another (eq. 42, sec. 4.7.1)."""
    results = []
    for x in c:
        w: List[Tensor] = []  # w_1, w_2, …
        for i, step in enumerate(block.layers):
            seen = [w[j] for j in range(i - 1, max(-1, i - 1 - block.block.seen_by_v), -1)]
            if block.block.always_on:
                w.append(step(x, *seen))
                continue
            for_chi = torch.cat([x, *(w[j] for j in range(i - 1, max(-1, i - 1 - block.block.seen_by_chi), -1))])
            w.append(mixture(step.score.weight[0] @ for_chi + step.score.bias[0], step.v(x, *seen), step.default))
        results.append(w[-1])
    return torch.stack(results)


def patch(x: Tensor, place: Sequence[int], kernel: Sequence[int]) -> Tensor:
    """The inputs [depth, *kernel] around a place of x [depth, *size], zero outside of it."""
    depth, *size = x.shape
    found = x.new_zeros(depth, *kernel)
    for number in range(math.prod(kernel)):
        offset = list(torch.unravel_index(torch.tensor(number), tuple(kernel)))
        there = [int(p + o - (k - 1) // 2) for p, o, k in zip(place, offset, kernel)]
        if all(0 <= t < s for t, s in zip(there, size)):
            found = found.index_put((torch.arange(depth), *(o.expand(depth) for o in offset)), x[(..., *there)])
    return found


def convolution(x: Tensor, convolved) -> Tensor:
    """CA-CNN of one input [depth, *size], place by place: [outputs, *size] (eq. 38-40)."""
    size = x.shape[1:]
    w = []
    for number in range(math.prod(size)):
        place = [int(p) for p in torch.unravel_index(torch.tensor(number), size)]
        c = patch(x, place, convolved.kernel).flatten()
        v = convolved.v.weight.flatten(1) @ c + convolved.v.bias
        score = convolved.score.weight.flatten() @ c + convolved.score.bias[0]
        w.append(mixture(score, v, convolved.default))
    return torch.stack(w, 1).unflatten(1, size)


def convolved_words(x: Tensor, rows: Ragged, convolved) -> Tensor:
    """CA-CNN of every row by itself, packed again."""
    return torch.cat([convolution(tokens.t(), convolved).t() for tokens in x.split(rows.lengths.tolist())])


def bag(w: Tensor, w_sigma: Tensor, theta: Tensor, v_0: Tensor, unknown: Sequence[bool]) -> Tensor:
    """s = v_0 Σ χ(w) + Σ (1 − χ(w)) w of one bag, χ = 1 of unknown symbols (eq. 19-21)."""
    chi = [theta.new_ones(()) if unseen else 1 / (1 + torch.exp(-theta @ s)) for s, unseen in zip(w_sigma, unknown)]
    return v_0 * sum(chi) + sum((1 - share) * token for share, token in zip(chi, w))


def embedding(tokens: Sequence[int], module) -> Tensor:
    """w = χ(w) v_0 + (1 − χ(w)) w′ of each symbol, χ = σ(θᵀ w_σ), 1 of the unknown one (eq. 12, 19, 21-22)."""
    found = []
    for token in tokens:
        if token == module.padding_idx:
            found.append(torch.zeros_like(module.v_0))
        elif token == module.unknown:
            found.append(module.v_0)
        else:
            found.append(mixture(module.theta @ module.for_chi.weight[token], module.v_0, module.weight[token]))
    return torch.stack(found)


def residual_convolution(x: Tensor, block) -> Tensor:
    """CA-RES at every place of one input [depth, *size], each sublayer after those before it (eq. 40, 42)."""
    size, w = x.shape[1:], []  # w_1, w_2, …
    for i, v in enumerate(block.v):
        seen, places = [w[j] for j in range(i - 1, max(-1, i - 1 - block.block.seen_by_v), -1)], []
        for_chi = [w[j] for j in range(i - 1, max(-1, i - 1 - block.block.seen_by_chi), -1)]
        for number in range(math.prod(size)):
            place = [int(p) for p in torch.unravel_index(torch.tensor(number), size)]
            value = v.weight.flatten(1) @ patch(torch.cat([x, *seen]), place, block.kernel).flatten() + v.bias
            value = block.activation(value)
            if not block.block.always_on:
                gate = block.gates[i]
                score = gate.score.weight.flatten() @ patch(torch.cat([x, *for_chi]), place, block.kernel).flatten()
                value = mixture(score + gate.score.bias[0], value, gate.default)
            places.append(value)
        w.append(torch.stack(places, 1).unflatten(1, size))
    return w[-1]
