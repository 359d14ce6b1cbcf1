"""Candidate tokens from logits: constraints, then the best or sampled tokens."""

from dataclasses import dataclass
from typing import Callable, Optional, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.layers.precision import distinct_integers
from docnmt_fairseq.layers.search_kernels import log_sum_exp
from docnmt_fairseq.search.beams import NONE, Candidates, Constraints
from docnmt_fairseq.search.options import SearchOptions

CHUNK = 128  # tokens of the vocabulary whose maximum is compared first


@dataclass(frozen=True)
class Symbols:
    """Indices of special symbols in the target dictionary."""

    pad: int
    eos: int
    unk: int


@dataclass(frozen=True)
class NextTokens:
    """Logits of the next tokens, −∞ for excluded tokens.

    Attributes:
        logits: [S, beam, V].
        log_sums: [S, beam, 1] log Σ exp of the model's logits: logits − log_sums are log-probabilities.
    """

    logits: Tensor
    log_sums: Tensor


def constrained(logits: Tensor, constraints: Constraints, symbols: Symbols, options: SearchOptions) -> NextTokens:
    """Applies constraints to logits.

    Args:
        logits: [S, beam, V], modified in place.
        constraints: constraints on the next tokens.
        symbols: special symbols.
        options: search options.
    """
    device, logits = logits.device, logits.float()

    def index(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(device)

    log_sums = log_sum_exp(logits)
    if len(constraints.replicated):
        rows = index(constraints.replicated)
        logits[rows], log_sums[rows] = logits[rows][:, :1], log_sums[rows][:, :1]
    logits[..., symbols.pad] = -torch.inf
    if options.unkpen:
        logits[..., symbols.unk] -= options.unkpen
    forced = np.flatnonzero(constraints.forced != NONE)
    if len(forced):
        rows, tokens = index(forced), index(constraints.forced[forced])
        kept = logits[rows, :, tokens]
        logits[rows] = -torch.inf
        logits[rows, :, tokens] = kept
    if len(constraints.endless):
        logits[index(constraints.endless), :, symbols.eos] = -torch.inf
    if len(constraints.banned[0]):
        logits[tuple(map(index, constraints.banned))] = -torch.inf
    return NextTokens(logits, log_sums)


def largest(x: Tensor, count: int) -> Tuple[Tensor, Tensor]:
    """Returns the largest values of each row of x [R, V] and their indices, [R, count] each, in descending order.

    Deterministic, unlike ``topk``: of equal values the lower index comes first (except for −∞).
    """
    if x.device.type == "cpu":  # elsewhere checking costs as much as breaking ties
        values, places = _largest(x, count + 1, lambda x, _: x)
        equal = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
        if not equal.any():
            return values[:, :count], places[:, :count]
    return _largest(x, count, distinct_integers)


def _largest(x: Tensor, count: int, by: Callable[[Tensor, Tensor], Tensor]) -> Tuple[Tensor, Tensor]:
    """Returns the largest values by the key ``by`` of values and indices.

    The maxima of chunks are compared first: the ``count`` largest values are in at most as many chunks.
    """
    chunks = x.size(1) // CHUNK
    places = torch.arange(x.size(1), device=x.device).expand(len(x), -1)
    among = x
    if chunks >= 2 * count:
        in_chunks, rest = x[:, : chunks * CHUNK].unflatten(1, (chunks, CHUNK)), x[:, chunks * CHUNK :]
        chosen = (
            by(in_chunks.amax(-1), places[:, :chunks]).topk(count, sorted=False).indices.sort().values
        )  # [R, count]
        of_chosen = (chosen[..., None] * CHUNK + places[:, None, :CHUNK]).flatten(1)
        among = torch.cat([x.gather(1, of_chosen), rest], dim=1)
        places = torch.cat([of_chosen, places[:, chunks * CHUNK :]], dim=1)
    found = by(among, places).topk(count).indices
    return among.gather(1, found), places.gather(1, found)


def best(following: NextTokens, totals: Tensor, beam: int) -> Candidates:
    """Returns the 2 · beam candidates of each sentence with the highest scores.

    Candidates of equal score are in the order of hypotheses, then tokens. (In fairseq's search this depends on the
    device and on the batch.)

    Args:
        following: next tokens.
        totals: [S, beam] scores of the hypotheses.
        beam: number of hypotheses per sentence.
    """
    count = min(2 * beam, following.logits.size(-1) - 1)
    values, tokens = (part.unflatten(0, (-1, beam)) for part in largest(following.logits.flatten(0, 1), count))
    together = (values - following.log_sums + totals[..., None]).flatten(1)  # [S, beam · count]
    scores, places = (part[:, : 2 * beam] for part in together.sort(descending=True, stable=True))
    return _read(scores, tokens.flatten(1).gather(1, places), places // count)


def sampled(following: NextTokens, totals: Tensor, uniform: Tensor, top_k: int = 0, top_p: float = 0.0) -> Candidates:
    """Samples one candidate for each hypothesis.

    Args:
        following: next tokens.
        totals: [S, beam] scores of the hypotheses.
        uniform: [S, beam] uniform random numbers.
        top_k: sample from the k most probable tokens; 0: all.
        top_p: sample from the smallest set of tokens with this cumulative probability; 0: all.
    """
    order: Optional[Tensor] = None
    # Relative to the most probable token: the sum of allowed probabilities may underflow in float32.
    highest = following.logits.amax(-1, keepdim=True)
    probabilities, whole = (following.logits - highest).exp().nan_to_num(0), (following.log_sums - highest).exp()
    if top_k:
        probabilities, order = probabilities.topk(min(top_k, probabilities.size(-1)))
    elif top_p:
        probabilities, order = probabilities.sort(descending=True)
        before = probabilities.cumsum(-1) - probabilities
        probabilities = probabilities.masked_fill(before >= top_p * whole, 0)
    cumulative = probabilities.double().cumsum(-1)
    wanted = uniform[..., None] * cumulative[..., -1:]
    place = torch.searchsorted(cumulative, wanted, right=True)
    last = (probabilities > 0).long().mul(torch.arange(1, probabilities.size(-1) + 1, device=place.device)).amax(-1)
    place = torch.minimum(place, (last - 1).clamp(min=0)[..., None])
    tokens = place if order is None else order.gather(-1, place)
    scores = (following.logits.gather(-1, tokens) - following.log_sums).squeeze(-1) + totals
    parents = torch.arange(totals.size(1), device=place.device).expand_as(totals)
    return _read(scores, tokens.squeeze(-1), parents)


def _read(scores: Tensor, tokens: Tensor, parents: Tensor) -> Candidates:
    """Copies the candidates to the host in one transfer; NaN scores become −∞."""
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    together = torch.stack([scores.double(), tokens.double(), parents.double()]).cpu().numpy()
    return Candidates(together[0].astype(np.float32), together[1].astype(np.int64), together[2].astype(np.int64))
