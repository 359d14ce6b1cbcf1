"""Methods for sentence vectors: context-aware re-embedding (CA-SEM), average, smooth inverse frequency (SIF)."""

import logging
from typing import Callable, Dict, Iterator, Tuple, Type

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.ca_layers.decomposition import compose
from docnmt_fairseq.errors import needs_extra

Means = Callable[[np.ndarray], Iterator[np.ndarray]]  # from a word table to the means of sentences, in chunks

logger = logging.getLogger(__name__)


class Average:
    """Mean of the word vectors, zero for unknown words (Wieting et al. 2016); base class of the methods.

    A sentence vector is the sum of the contributions of its words, post-processed by :meth:`finish`.

    Args:
        iterations: maximum number of iterations of ``ca-sem``.
        smoothing: a of ``sif``.
    """

    def __init__(self, iterations: int = 100, smoothing: float = 1e-3):
        self.iterations, self.smoothing = iterations, smoothing

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Means) -> np.ndarray:
        """Fits one vector [d] on a corpus; here zero.

        Args:
            vectors: [V, d] float32.
            counts: [V] word counts, not all 0.
            means: computes the means of the corpus's sentences from a table of word contributions.
        """
        return np.zeros(vectors.shape[1], dtype=np.float32)

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns the contribution of each word, [V + 1, d] float32; the last row is for unknown words."""
        return np.concatenate([vectors, np.zeros_like(vectors[:1])])

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns sentence vectors [S, d] from sums [S, d] over ``lengths`` [S] words."""
        return sums / np.maximum(lengths, 1)[:, None].astype(sums.dtype)


class SmoothInverseFrequency(Average):
    """SIF (Arora et al. 2017): mean of a / (a + p(w)) w, without its projection on the corpus's first component."""

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Means) -> np.ndarray:
        """Fits the first component of the sentence means, of length 1; not centred, as in the authors' code."""
        with needs_extra("embed", "--method sif"):
            from sklearn.decomposition import TruncatedSVD
        sample = np.concatenate(list(means(self.table(vectors, counts, np.zeros(0)))))
        if min(sample.shape) == 1:  # not supported by scikit-learn
            return np.linalg.svd(sample, full_matrices=False)[2][0].astype(np.float32)
        return TruncatedSVD(1, algorithm="arpack", random_state=0).fit(sample).components_[0].astype(np.float32)

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns the weighted vectors, and zero."""
        weights = self.smoothing / (self.smoothing + counts / counts.sum())
        return super().table(vectors * weights[:, None].astype(np.float32), counts, learnt)

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns the means without their projection on the component."""
        means = super().finish(sums, lengths, learnt)
        along = np.einsum("sd,d->s", means, learnt)  # unlike a matrix product independent of a sentence's position
        return means - np.outer(along, learnt)


class Reembedding(Average):
    """CA-SEM: Σ χ v_0 + (1 − χ) w′ ([Z] eq. 18); for unknown words w′ = v_0 and χ = 1."""

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Means) -> np.ndarray:
        """Fits v_0."""
        return fit_context_vector(vectors, counts, self.iterations)[0].astype(np.float32)

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns χ v_0 + (1 − χ) w′ of each word, and v_0."""
        return np.concatenate([reembed(vectors, learnt).numpy(), learnt[None]])

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns the sums."""
        return sums


class SensitivePart(Reembedding):
    """Context-sensitive part of CA-SEM: Σ (1 − χ) w′, zero for unknown words.

    [Z] calls eq. 18 "the context-sensitive part of Eq. 14", but as printed it is all of eq. 14 and hardly differs from
    the sum of the word vectors, since χ v_0 + (1 − χ) w′ is fitted to w.
    """

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Returns (1 − χ) w′ of each word, and zero."""
        return np.concatenate([reembed(vectors, learnt, sensitive_only=True).numpy(), np.zeros_like(learnt)[None]])


METHODS: Dict[str, Type[Average]] = {
    "ca-sem": Reembedding,
    "ca-sem-sensitive": SensitivePart,
    "sif": SmoothInverseFrequency,
    "average": Average,
}


# --- Context-aware re-embedding ([Z] sec. 3.1.1-3.1.2, alg. 1) ---


def decompose(vectors: np.ndarray, v_0: np.ndarray) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the optimal decomposition for v_0: χ = a |v_0| / (|v_0|² + |w′|²), clipped to [0, 1] (alg. 1, step 1).

    Args:
        vectors: w, [V, d].
        v_0: [d], not zero; u = v_0 / |v_0|.

    Returns:
        a = w·u, |w′|² of w′ = w − a u, and χ, each [V]; χ is the position between w′ (0) and v_0 (1) of the point
        closest to w.
    """
    length = np.linalg.norm(v_0)
    along = vectors @ (v_0 / length)
    across = np.maximum(np.einsum("vd,vd->v", vectors, vectors) - along**2, 0)
    return along, across, np.clip(along * length / (length**2 + across), 0, 1)


def energy_and_minimum(vectors: np.ndarray, counts: np.ndarray, v_0: np.ndarray) -> Tuple[float, np.ndarray]:
    """Returns the energy of [Z] eq. 17 with the optimal χ and w′ for v_0 (step 1), and the optimal v_0 (step 2).

    Neither needs w′ itself: w − χ v_0 − (1 − χ) w′ = (a − χ |v_0|) u + χ w′ with u = v_0 / |v_0|, and the least squares
    v_0 is Σ n χ (w − (1 − χ) w′) / Σ n χ² = Σ n χ (a u + χ w′) / Σ n χ².

    Args:
        vectors: w, [V, d].
        counts: n_w, [V].
        v_0: [d].
    """
    length = np.linalg.norm(v_0)
    along, across, chi = decompose(vectors, v_0)
    energy = counts @ ((along - chi * length) ** 2 + chi**2 * across)
    weights = counts * chi**2
    total = weights.sum()
    least = weights @ vectors + (counts @ (chi * along) - weights @ along) * (v_0 / length)
    return float(energy), least / total if total > 0 else v_0


def first_component(vectors: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Returns the first principal component of all word occurrences, [d]: the initial v_0 of alg. 1.

    Not centred, because it stands for what the words have in common; on the side of their mean; its length is the root
    mean square of the words' components along it, so that the scale of the vectors does not matter. [Z] leaves all of
    this open.
    """
    values, directions = np.linalg.eigh((vectors * counts[:, None]).T @ vectors / counts.sum())
    direction = directions[:, -1] * np.sqrt(max(values[-1], 0))
    return -direction if counts @ (vectors @ direction) < 0 else direction


def fit_context_vector(vectors: np.ndarray, counts: np.ndarray, iterations: int = 100) -> Tuple[np.ndarray, np.ndarray]:
    """Fits v_0, [d]; also returns the decreasing energy of [Z] eq. 17 at the start and after each iteration.

    Alternates as alg. 1 does. A new v_0 also changes w′, which must stay orthogonal to it; this may increase the energy
    by more than the least squares have decreased it. Then the algorithm stops and keeps the previous v_0. (Otherwise it
    has no minimum: the energy falls with the length of v_0 towards that of the words with a < 0.)

    Args:
        vectors: w, [V, d].
        counts: n_w, [V], not all 0.
        iterations: maximum number of iterations.
    """
    occurring = counts > 0
    vectors, counts = vectors[occurring].astype(np.float64), counts[occurring].astype(np.float64)
    v_0 = first_component(vectors, counts)
    energy, candidate = energy_and_minimum(vectors, counts, v_0)
    energies = [energy]
    for iteration in range(iterations):
        logger.info(f"iteration {iteration}: energy {energy:.6g}, {energy / counts.sum():.6g} per word")
        energy, following = energy_and_minimum(vectors, counts, candidate)
        if not energy < energies[-1]:
            logger.info(f"iteration {iteration + 1}: energy {energy:.6g}, no longer decreasing")
            break
        v_0, candidate = candidate, following
        energies.append(energy)
    return v_0, np.array(energies)


def reembed(vectors: np.ndarray, v_0: np.ndarray, sensitive_only: bool = False) -> Tensor:
    """Returns χ v_0 + (1 − χ) w′ of every word, [V, d], whose sum is a sentence vector ([Z] eq. 18).

    Args:
        vectors: w, [V, d].
        v_0: [d] of the same type.
        sensitive_only: return (1 − χ) w′ only.
    """
    along, _, chi = decompose(vectors, v_0)
    across = vectors - np.outer(along, v_0 / np.linalg.norm(v_0))  # w′
    free = np.zeros_like(v_0) if sensitive_only else v_0
    return compose(torch.from_numpy(chi)[:, None], torch.from_numpy(free), torch.from_numpy(across))
