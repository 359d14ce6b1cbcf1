"""Random numbers for sampling, independent per sentence and of what is decoded in the same batch."""

from typing import List, Mapping, Optional, Sequence

import numpy as np

BUFFERED_STEPS = 64  # steps whose numbers are drawn together


class SamplingRng:
    """Uniform numbers for every step of every hypothesis, determined by the seed and the sentence.

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
        """Returns the numbers [S, beam] of the next step for slots at ``steps`` [S]."""
        for slot in np.flatnonzero(steps % BUFFERED_STEPS == 0):
            self.numbers[slot] = self.generators[slot].random((BUFFERED_STEPS, self.beam))
        return self.numbers[np.arange(len(steps)), steps % BUFFERED_STEPS]

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        self.numbers = self.numbers[slots]
        self.generators = [self.generators[slot] for slot in slots]
