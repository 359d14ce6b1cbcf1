"""Loop references of sentence vectors; slow and obvious."""

from itertools import combinations, pairwise
from typing import Dict, List, Sequence, Tuple

import numpy as np


def closest_point(w: np.ndarray, w_sensitive: np.ndarray, v_0: np.ndarray) -> float:
    """Returns where on the segment from w′ (0) to v_0 (1) the point closest to w lies ([Z] fig. 1)."""
    direction = v_0 - w_sensitive
    return min(1.0, max(0.0, float((w - w_sensitive) @ direction / (direction @ direction))))


def step_1(words: Sequence[np.ndarray], v_0: np.ndarray) -> Tuple[List[np.ndarray], List[float]]:
    """Returns w′ = (I − v_0 v_0ᵀ / |v_0|²) w and χ(w) of every word ([Z] sec. 3.1.2, 2 and 3)."""
    projection = np.eye(len(v_0)) - np.outer(v_0, v_0) / (v_0 @ v_0)
    sensitive = [projection @ w for w in words]
    return sensitive, [closest_point(w, of_word, v_0) for w, of_word in zip(words, sensitive)]


def step_2(words: Sequence[np.ndarray], sensitive: Sequence[np.ndarray], chi: Sequence[float]) -> np.ndarray:
    """Returns the least squares solution v_0 of χ(w) v_0 = w − (1 − χ(w)) w′, an equation an occurrence."""
    coefficients = np.array([[c] for c in chi])
    rest = np.array([w - (1 - c) * of_word for w, of_word, c in zip(words, sensitive, chi)])
    return np.linalg.lstsq(coefficients, rest, rcond=None)[0][0]


def energy(words: Sequence[np.ndarray], v_0: np.ndarray) -> float:
    """Returns the energy of [Z] eq. 16 after step 1."""
    sensitive, chi = step_1(words, v_0)
    of_words = [w - c * v_0 - (1 - c) * of_word for w, of_word, c in zip(words, sensitive, chi)]
    return sum(float(difference @ difference) for difference in of_words)


def alternate(words: Sequence[np.ndarray], v_0: np.ndarray, iterations: int) -> Tuple[np.ndarray, List[float]]:
    """Returns v_0 and the energies of alg. 1 as it is printed, which stops nowhere here, over all occurrences."""
    energies = [energy(words, v_0)]
    for _ in range(iterations):
        v_0 = step_2(words, *step_1(words, v_0))
        energies.append(energy(words, v_0))
    return v_0, energies


def sentence(words: Sequence[np.ndarray], unknown: int, v_0: np.ndarray) -> np.ndarray:
    """Returns v_0 Σ χ(w) + Σ (1 − χ(w)) w′ ([Z] eq. 18); an unknown word has χ = 1."""
    total = unknown * v_0
    for of_word, c in zip(*step_1(words, v_0)):
        total = total + c * v_0 + (1 - c) * of_word
    return total


def fewest_parts(tokens: Sequence[str], known: Dict[Tuple[str, ...], int], unknown: int) -> List[int]:
    """Returns the best of all ways to read a sentence: fewest parts, fewest unknown ones, the longest first."""
    best = None
    for cuts in range(max(len(tokens), 1)):
        for places in combinations(range(1, len(tokens)), cuts):
            bounds = [0, *places, len(tokens)]
            parts = [tuple(tokens[start:end]) for start, end in pairwise(bounds) if start < end]
            if any(len(part) > 1 and part not in known for part in parts):
                continue
            numbers = [known.get(part, unknown) for part in parts]
            rank = (len(parts), numbers.count(unknown), [-len(part) for part in parts])
            if best is None or rank < best[0]:
                best = rank, numbers
    return best[1]


def most_similar(vectors: np.ndarray, most: int) -> List[List[int]]:
    """Returns how many sentences back the most similar earlier ones stand, the nearest first among equals."""
    found = []
    for row, vector in enumerate(vectors):
        likeness = {}
        for earlier in range(row):
            lengths = np.linalg.norm(vector) * np.linalg.norm(vectors[earlier])
            likeness[row - earlier] = vector @ vectors[earlier] / lengths if lengths else 0.0
        order = sorted(likeness, key=lambda back: (-round(likeness[back], 6), back))[:most]
        found.append(order + [0] * (most - len(order)))
    return found
