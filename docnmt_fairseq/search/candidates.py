"""Candidate tokens from logits: constraints, then the best or sampled tokens."""

from typing import Callable, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import Dictionary
from torch import Tensor

from docnmt_fairseq.layers.precision import distinct_integers
from docnmt_fairseq.layers.search_kernels import log_sum_exp
from docnmt_fairseq.search.beams import NONE, Candidates, Constraints
from docnmt_fairseq.search.options import SearchOptions

CHUNK = 128  # tokens of the vocabulary whose maximum is compared first
BUFFERED_STEPS = 64  # steps whose random numbers are drawn together


def constrained(
    logits: Tensor, constraints: Constraints, dictionary: Dictionary, options: SearchOptions
) -> Tuple[Tensor, Tensor]:
    """Logits of the next tokens, −∞ for excluded ones, and log Σ exp of the model's logits, [S, beam, 1].

    Logits minus the latter are log-probabilities.

    Args:
        logits: [S, beam, V], modified in place.
        constraints: constraints on the next tokens.
        dictionary: target dictionary.
        options: search options.
    """
    device, logits = logits.device, logits.float()

    def index(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(device)

    log_sums = log_sum_exp(logits)
    if len(constraints.replicated):
        rows = index(constraints.replicated)
        logits[rows], log_sums[rows] = logits[rows][:, :1], log_sums[rows][:, :1]
    logits[..., dictionary.pad()] = -torch.inf
    if options.unkpen:
        logits[..., dictionary.unk()] -= options.unkpen
    forced = np.flatnonzero(constraints.forced != NONE)
    if len(forced):
        rows, tokens = index(forced), index(constraints.forced[forced])
        kept = logits[rows, :, tokens]
        logits[rows] = -torch.inf
        logits[rows, :, tokens] = kept
    if len(constraints.endless):
        logits[index(constraints.endless), :, dictionary.eos()] = -torch.inf
    if len(constraints.banned[0]):
        logits[tuple(map(index, constraints.banned))] = -torch.inf
    return logits, log_sums


def largest(x: Tensor, count: int) -> Tuple[Tensor, Tensor]:
    """Largest values of each row of x [R, V] and their indices, [R, count] each, in descending order.

    Deterministic, unlike ``topk``: of equal values the lower index comes first (except for −∞).
    """
    if x.device.type == "cpu":  # elsewhere checking costs as much as breaking ties
        values, places = _largest(x, count + 1, lambda x, _: x)
        equal = (values[:, 1:] == values[:, :-1]) & (values[:, 1:] > -torch.inf)
        if not equal.any():
            return values[:, :count], places[:, :count]
    return _largest(x, count, distinct_integers)


def _largest(x: Tensor, count: int, by: Callable[[Tensor, Tensor], Tensor]) -> Tuple[Tensor, Tensor]:
    """Largest values by the key ``by`` of values and indices.

    The maxima of chunks are compared first: the ``count`` largest values are in at most as many chunks.
    """
    chunks = x.size(1) // CHUNK
    places = torch.arange(x.size(1), device=x.device).expand(len(x), -1)
    among = x
    if chunks >= 2 * count:
        in_chunks, rest = x[:, : chunks * CHUNK].unflatten(1, (chunks, CHUNK)), x[:, chunks * CHUNK :]
        best_chunks = by(in_chunks.amax(-1), places[:, :chunks]).topk(count, sorted=False)
        chosen = best_chunks.indices.sort().values  # [R, count]
        of_chosen = (chosen[..., None] * CHUNK + places[:, None, :CHUNK]).flatten(1)
        among = torch.cat([x.gather(1, of_chosen), rest], dim=1)
        places = torch.cat([of_chosen, places[:, chunks * CHUNK :]], dim=1)
    found = by(among, places).topk(count).indices
    return among.gather(1, found), places.gather(1, found)


def best(
    logits: Tensor, log_sums: Tensor, totals: Tensor, beam: int, fairseq_steps: Optional[np.ndarray] = None
) -> Candidates:
    """2 · beam candidates of each sentence with the highest scores.

    Candidates of equal score are in the order of hypotheses, then tokens, or in that of fairseq's search.

    Args:
        logits, log_sums: result of :func:`constrained`.
        totals: [S, beam] scores of the hypotheses.
        beam: number of hypotheses per sentence.
        fairseq_steps: [S] number of tokens of the hypotheses, for the order of fairseq's search on a CPU.
    """
    more = int(fairseq_steps is not None)  # a candidate more shows whether the last one is unique
    count = min(2 * beam + more, logits.size(-1) - 1)
    values, tokens = (part.unflatten(0, (-1, beam)) for part in largest(logits.flatten(0, 1), count))
    together = (values - log_sums + totals[..., None]).flatten(1)  # [S, beam · count]
    scores, places = (part[:, : 2 * beam + more] for part in together.sort(descending=True, stable=True))
    tokens, parents = tokens.flatten(1).gather(1, places), places // count
    if fairseq_steps is not None:
        tied = ((scores[:, 1:] == scores[:, :-1]) & (scores[:, 1:] > -torch.inf)).any(1).nonzero().flatten().tolist()
        scores, tokens, parents = (part[:, : 2 * beam] for part in (scores, tokens, parents))
        for row in tied:
            first = 1 if fairseq_steps[row] == 0 else beam  # at first all hypotheses are equal
            together = logits[row, :first] - log_sums[row, :first] + totals[row, :first, None]
            in_order(together, scores[row], tokens[row], parents[row])
    return _read(scores, tokens, parents)


def in_order(together: Tensor, scores: Tensor, tokens: Tensor, parents: Tensor) -> None:
    """Sets the candidates [c] of a sentence in the order of fairseq's search: that of ``topk`` over all scores.

    Args:
        together: [hypotheses, V] scores.
        scores, tokens, parents: candidates, modified in place.
    """
    values, places = together.flatten().topk(min(len(scores), together.numel() - 1))
    for part, found in ((scores, values), (tokens, places % together.size(1)), (parents, places // together.size(1))):
        part[: len(found)] = found


def sampled(
    logits: Tensor, log_sums: Tensor, totals: Tensor, uniform: Tensor, top_k: int = 0, top_p: float = 0.0
) -> Candidates:
    """One sampled candidate for each hypothesis.

    Args:
        logits, log_sums: result of :func:`constrained`.
        totals: [S, beam] scores of the hypotheses.
        uniform: [S, beam] uniform random numbers.
        top_k: sample from the k most probable tokens; 0: all.
        top_p: sample from the smallest set of tokens with this cumulative probability; 0: all.
    """
    order: Optional[Tensor] = None
    # Relative to the most probable token: the sum of allowed probabilities may underflow in float32.
    highest = logits.amax(-1, keepdim=True)
    probabilities, whole = (logits - highest).exp().nan_to_num(0), (log_sums - highest).exp()
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
    scores = (logits.gather(-1, tokens) - log_sums).squeeze(-1) + totals
    parents = torch.arange(totals.size(1), device=place.device).expand_as(totals)
    return _read(scores, tokens.squeeze(-1), parents)


def _read(scores: Tensor, tokens: Tensor, parents: Tensor) -> Candidates:
    """Copies the candidates to the host in one transfer; NaN scores become −∞."""
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    together = torch.stack([scores.double(), tokens.double(), parents.double()]).cpu().numpy()
    return Candidates(together[0].astype(np.float32), together[1].astype(np.int64), together[2].astype(np.int64))


class SamplingRng:
    """Uniform random numbers for every step of every hypothesis, determined by the seed and the sentence alone.

    Args:
        seed: seed of all sentences.
        beam: number of hypotheses per sentence.
        keys: by sentence id, non-negative integers that identify the sentence; None: the ids.
    """

    def __init__(self, seed: int, beam: int, keys: Optional[Mapping[int, Sequence[int]]] = None):
        self.seed, self.beam, self.keys = seed, beam, {} if keys is None else keys
        self.generators: List[np.random.Generator] = []
        self.numbers = np.zeros((0, BUFFERED_STEPS, beam))

    def begin(self, slots: np.ndarray, sentences: List[int], count: int) -> None:
        """Starts sentences in some of ``count`` slots."""
        added = count - len(self.generators)
        self.generators += [np.random.default_rng(self.seed) for _ in range(added)]
        self.numbers = np.concatenate([self.numbers, np.zeros((added, BUFFERED_STEPS, self.beam))])
        for slot, sentence in zip(slots.tolist(), sentences):
            self.generators[slot] = np.random.default_rng([self.seed, *self.keys.get(sentence, [sentence])])

    def next(self, steps: np.ndarray) -> np.ndarray:
        """Numbers [S, beam] of the next step for slots at ``steps`` [S]."""
        for slot in np.flatnonzero(steps % BUFFERED_STEPS == 0):
            self.numbers[slot] = self.generators[slot].random((BUFFERED_STEPS, self.beam))
        return self.numbers[np.arange(len(steps)), steps % BUFFERED_STEPS]

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        self.numbers = self.numbers[slots]
        self.generators = [self.generators[slot] for slot in slots]
