"""The random numbers by which a search draws tokens: of each sentence its own, wherever and beside whatever it is."""

from typing import List, Mapping, Optional, Sequence

import numpy as np

AHEAD = 64  # steps whose numbers are drawn together


class Draws:
    """Numbers from 0 to 1 for every step of every hypothesis, by the seed and the sentence.

    Args:
        seed: of all.
        beam: hypotheses of a sentence.
        keys: by the sentence's id, natural numbers by which sentences differ; None: their ids.
    """

    def __init__(self, seed: int, beam: int, keys: Optional[Mapping[int, Sequence[int]]] = None):
        self.seed, self.beam, self.keys = seed, beam, {} if keys is None else keys
        self.generators: List[np.random.Generator] = []
        self.numbers = np.zeros((0, AHEAD, beam))

    def begin(self, slots: np.ndarray, sentences: List[int], count: int) -> None:
        """Sentences of some ids begin in some of ``count`` slots."""
        added = count - len(self.generators)
        self.generators += [np.random.default_rng(self.seed) for _ in range(added)]
        self.numbers = np.concatenate([self.numbers, np.zeros((added, AHEAD, self.beam))])
        for slot, sentence in zip(slots.tolist(), sentences):
            self.generators[slot] = np.random.default_rng([self.seed, *self.keys.get(sentence, [sentence])])

    def next(self, steps: np.ndarray) -> np.ndarray:
        """The numbers of the next step, [S, beam], where slots are at ``steps`` [S]."""
        for slot in np.flatnonzero(steps % AHEAD == 0):
            self.numbers[slot] = self.generators[slot].random((AHEAD, self.beam))
        return self.numbers[np.arange(len(steps)), steps % AHEAD]

    def keep(self, slots: np.ndarray) -> None:
        """Gives up all slots but these."""
        self.numbers = self.numbers[slots]
        self.generators = [self.generators[slot] for slot in slots]
