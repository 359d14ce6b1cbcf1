"""Context-aware sentence re-embedding, CA-SEM ([Z] sec. 3.1.1-3.1.2, alg. 1)."""

import logging
from typing import NamedTuple, Tuple

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.ca_layers.decomposition import compose
from docnmt_fairseq.errors import InputError

logger = logging.getLogger(__name__)


class Decomposition(NamedTuple):
    """What a word's vector is made of, given v_0; u = v_0 / |v_0|.

    Attributes:
        along: a = w·u, [V].
        across: |w′|² of w′ = w − a u, [V].
        chi: χ, [V]: where between w′ and v_0 the point closest to w lies, 0 at w′, 1 at v_0.
    """

    along: np.ndarray
    across: np.ndarray
    chi: np.ndarray


def decompose(vectors: np.ndarray, v_0: np.ndarray) -> Decomposition:
    """The best decomposition for v_0: χ = a |v_0| / (|v_0|² + |w′|²), between 0 and 1 (step 1 of alg. 1).

    Args:
        vectors: w, [V, d].
        v_0: [d], not zero.
    """
    length = np.linalg.norm(v_0)
    along = vectors @ (v_0 / length)
    across = np.maximum(np.einsum("vd,vd->v", vectors, vectors) - along**2, 0)
    return Decomposition(along, across, np.clip(along * length / (length**2 + across), 0, 1))


def energy_and_minimum(vectors: np.ndarray, counts: np.ndarray, v_0: np.ndarray) -> Tuple[float, np.ndarray]:
    """The energy of [Z] eq. 17 with the best χ and w′ for v_0 (step 1), and the best v_0 for those (step 2).

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
    """The first principal component of all word occurrences, [d]: where alg. 1 begins.

    Not centred, since it is what the words have in common that is looked for; on the side where their mean is; as long
    as the root mean square of the words' components along it, so that the scale of the vectors makes no difference.
    The text says nothing about any of this.
    """
    values, directions = np.linalg.eigh((vectors * counts[:, None]).T @ vectors / counts.sum())
    direction = directions[:, -1] * np.sqrt(max(values[-1], 0))
    return -direction if counts @ (vectors @ direction) < 0 else direction


def fit_context_vector(vectors: np.ndarray, counts: np.ndarray, iterations: int = 100) -> Tuple[np.ndarray, np.ndarray]:
    """Learns v_0, [d], and gives the energy of [Z] eq. 17 at the start and after each iteration, falling.

    Alternates as alg. 1 does. A new v_0 moves w′ as well, which must stay at a right angle to it, and this may cost
    more than the least squares have gained: then the energy rises, the algorithm stops, and the v_0 before is kept.
    (No minimum is reached otherwise: the longer v_0, the less energy, until that of the words with a < 0 is left.)

    Args:
        vectors: w, [V, d].
        counts: n_w, [V], not all 0.
        iterations: at most.

    Raises:
        InputError: all vectors are zero.
    """
    occurring = counts > 0
    vectors, counts = vectors[occurring].astype(np.float64), counts[occurring].astype(np.float64)
    v_0 = first_component(vectors, counts)
    if not v_0.any():
        raise InputError("the vectors of all words of the corpus are zero")
    energy, candidate = energy_and_minimum(vectors, counts, v_0)
    energies = [energy]
    for iteration in range(iterations):
        logger.info(f"iteration {iteration}: energy {energy:.6g}, {energy / counts.sum():.6g} a word")
        energy, following = energy_and_minimum(vectors, counts, candidate)
        if not energy < energies[-1]:
            logger.info(f"iteration {iteration + 1}: energy {energy:.6g}, which falls no more")
            break
        v_0, candidate = candidate, following
        energies.append(energy)
    else:
        logger.info(f"iteration {iterations}: energy {energy:.6g}, {energy / counts.sum():.6g} a word")
    return v_0, np.array(energies)


def reembed(vectors: np.ndarray, v_0: np.ndarray, sensitive_only: bool = False) -> Tensor:
    """χ v_0 + (1 − χ) w′ of every word, [V, d], whose sum is a sentence's vector ([Z] eq. 18).

    Args:
        vectors: w, [V, d].
        v_0: [d] of the same type.
        sensitive_only: (1 − χ) w′ alone.
    """
    along, _, chi = decompose(vectors, v_0)
    across = vectors - np.outer(along, v_0 / np.linalg.norm(v_0))  # w′
    free = np.zeros_like(v_0) if sensitive_only else v_0
    return compose(torch.from_numpy(chi)[:, None], torch.from_numpy(free), torch.from_numpy(across))
