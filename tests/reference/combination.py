"""Attention combinations, query by query and state by state, from the equations of [L] and [Z]; slow and obvious."""

import math
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from docnmt_fairseq.multisource import scores


def sigmoid(value: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-value))


def nothing(x: Tensor, width: int) -> Tensor:
    """Zeros that a gradient can be asked of."""
    return x.new_zeros(width) + 0 * x.sum()


def energy(score, x: Tensor, h: Tensor, source: int) -> List[Tensor]:
    """e of one state, one a head ([L] eq. 1; [Z] eq. 26 and 43; Vaswani et al. 2017, eq. 1)."""
    if isinstance(score, scores.AdditiveScore):
        key = score.keys[source].weight @ h + score.keys[source].bias
        hidden = torch.tanh(score.query.weight @ x + score.query.bias + key)
        return [score.energy.weight[0] @ hidden]
    if isinstance(score, scores.GeneralScore):
        return [x @ score.keys[source].weight @ h]
    if isinstance(score, scores.LinearScore):
        return [score.keys[source].weight[0] @ h + score.query.weight[0] @ x + score.query.bias[0]]
    q, k = score.query(x).chunk(score.heads), score.keys[source](h).chunk(score.heads)
    return [a @ b / math.sqrt(len(a)) for a, b in zip(q, k)]


def read(score, reader, x: Tensor, states: Sequence[Tuple[int, Tensor]], values: Sequence[Tensor]):
    """What a query reads from (source, state) pairs, and the part of each in it."""
    energies = [energy(score, x, h, source) for source, h in states]
    if score.context_free:  # s = v(c) Σ χ + Σ (1 − χ) s_i ([Z] eq. 23)
        v = torch.tanh(reader.free.weight @ x + reader.free.bias)
        chi = [sigmoid(e) for (e,) in energies]
        return v * sum(chi) + sum((1 - c) * s for c, s in zip(chi, values)), [(1 - c) / len(chi) for c in chi]
    heads, outputs, parts = len(energies[0]), [], [0] * len(states)
    for h in range(heads):  # [L] eq. 2-3
        exponentials = [torch.exp(e[h]) for e in energies]
        alpha = [value / sum(exponentials) for value in exponentials]
        outputs.append(sum(a * value.chunk(heads)[h] for a, value in zip(alpha, values)))
        parts = [part + a / heads for part, a in zip(parts, alpha)]
    return torch.cat(outputs), parts


def for_energy(module, h: Tensor) -> Tensor:
    """What χ reads of a state: the state, or the embedding of its own behind it ([Z] sec. 3.3)."""
    return h[-module.config.chi_dim :] if module.config.chi_dim else h


def for_sum(module, h: Tensor) -> Tensor:
    """The state itself."""
    return h[: len(h) - module.config.chi_dim]


def source_attention(attention, x: Tensor, states: Sequence[Tensor]) -> Tuple[Tensor, Tensor]:
    """c^{(k)} and the part of it that comes from states; nothing where there is no state."""
    if not states:
        return nothing(x, attention.width), x.new_zeros(())
    pairs = [(0, for_energy(attention, h)) for h in states]
    values = [attention.values(for_sum(attention, h)) for h in states]
    vector, parts = read(attention.score, attention.state_sum, x, pairs, values)
    return attention.project(vector), sum(parts)


def sentinel(module, x: Tensor, evidence: Optional[Tensor]) -> List[Tensor]:
    """ψ ⊙ s_i, ψ = σ(W [y_i; s_{i−1}]) ([L] eq. 4), if there is one."""
    return [] if module.sentinel is None else [sigmoid(module.sentinel.gate(evidence)) * x]


def flat(module, x: Tensor, sources: Sequence[Sequence[Tensor]], evidence: Optional[Tensor]):
    """c = Σ_k Σ_j α_j^{(k)} U_c^{(k)} h_j^{(k)} ([L] eq. 6-7), the sentinel one more source of one state (eq. 5)."""
    sources = [*sources, sentinel(module, x, evidence)] if module.sentinel is not None else sources
    pairs = [(k, h) for k, states in enumerate(sources) for h in states]
    if not pairs:
        return nothing(x, module.output_dim), [x.new_zeros(())] * len(sources)
    project = module.score.keys if module.values is None else module.values
    values = [project[k](for_sum(module, h)) for k, h in pairs]
    pairs = [(k, for_energy(module, h)) for k, h in pairs]
    vector, parts = read(module.score, module.state_sum, x, pairs, values)
    shares = [sum((p for (k, _), p in zip(pairs, parts) if k == n), x.new_zeros(())) for n in range(len(sources))]
    return module.project(vector), shares


def hierarchical(module, x: Tensor, sources: Sequence[Sequence[Tensor]], evidence: Optional[Tensor]):
    """c = Σ_k β^{(k)} U_c^{(k)} c^{(k)}, β over the sources that there are ([L] eq. 8-10)."""
    pairs = []
    for k, (attention, states) in enumerate(zip(module.attentions, sources)):
        if states:
            pairs.append((k, source_attention(attention, x, states)[0]))
    pairs += [(len(sources), vector) for vector in sentinel(module, x, evidence)]
    total = len(sources) + (module.sentinel is not None)
    if not pairs:
        return nothing(x, module.output_dim), [x.new_zeros(())] * total
    project = module.score.keys if module.values is None else module.values
    vector, parts = read(module.score, module.state_sum, x, pairs, [project[k](c) for k, c in pairs])
    shares = dict(zip((k for k, _ in pairs), parts))
    return module.project(vector), [shares.get(k, x.new_zeros(())) for k in range(total)]


def concatenation(module, x: Tensor, sources: Sequence[Sequence[Tensor]], evidence: Optional[Tensor]):
    """U [c^{(1)}; …; c^{(K)}] + b; as [L] has it, without U and b."""
    contexts, shares = zip(*(source_attention(a, x, states) for a, states in zip(module.attentions, sources)))
    if not hasattr(module.project, "weight"):
        return torch.cat(contexts), list(shares)
    return module.project.weight @ torch.cat(contexts) + module.project.bias, list(shares)


def parallel(module, x: Tensor, sources: Sequence[Sequence[Tensor]], evidence: Optional[Tensor]):
    """Σ_k c^{(k)}."""
    contexts, shares = zip(*(source_attention(a, x, states) for a, states in zip(module.attentions, sources)))
    return sum(contexts), list(shares)


def serial(module, x: Tensor, sources: Sequence[Sequence[Tensor]], evidence: Optional[Tensor]):
    """y ← y + c^{(k)}(LayerNorm(y)) from source to source, beginning with y = s_i; what was added in all."""
    y, shares = x, []
    for k, (attention, states) in enumerate(zip(module.attentions, sources)):
        query = y
        if k:
            norm = module.norms[k - 1]
            query = (y - y.mean()) / torch.sqrt(y.var(unbiased=False) + norm.eps) * norm.weight + norm.bias
        context, share = source_attention(attention, query, states)
        y = y + context
        shares.append(share)
    return y - x, shares


COMBINATIONS = {
    "flat": flat,
    "hierarchical": hierarchical,
    "concatenation": concatenation,
    "parallel": parallel,
    "serial": serial,
}
