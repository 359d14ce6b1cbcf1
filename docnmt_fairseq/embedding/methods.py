"""How word vectors make a sentence vector: context-aware re-embedding, their mean, smooth inverse frequencies."""

from typing import Callable, Dict, Iterator, Type

import numpy as np

from docnmt_fairseq.embedding.reembedding import fit_context_vector, reembed
from docnmt_fairseq.errors import InputError

Sums = Callable[[np.ndarray], Iterator[np.ndarray]]  # from a table of words to the sentences' means, some at a time


class Method:
    """Contract: a sentence is the sum of what each word gives, finished by :meth:`finish`.

    Args:
        iterations: of ``ca-sem``, at most.
        smoothing: a of ``sif``.
    """

    def __init__(self, iterations: int = 100, smoothing: float = 1e-3):
        self.iterations, self.smoothing = iterations, smoothing

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Sums) -> np.ndarray:
        """Learns one vector [d] from a corpus.

        Args:
            vectors: [V, d] float32.
            counts: [V] how often each word occurs, not all 0.
            means: gives vectors of the corpus's sentences before they are finished, from the table of its words.
        """
        raise NotImplementedError

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """What each word gives, [V + 1, d] float32, the last row for unknown words."""
        raise NotImplementedError

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """Sentence vectors [S, d] from sums [S, d] over so many words, [S]."""
        raise NotImplementedError


class Reembedding(Method):
    """CA-SEM: the sum of χ v_0 + (1 − χ) w′ ([Z] eq. 18); unknown words are free of context: w′ = v_0, χ = 1."""

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Sums) -> np.ndarray:
        """Learns v_0."""
        return fit_context_vector(vectors, counts, self.iterations)[0].astype(np.float32)

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """χ v_0 + (1 − χ) w′ of each word, and v_0."""
        return np.concatenate([reembed(vectors, learnt).numpy(), learnt[None]])

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """The sums."""
        return sums


class SensitivePart(Reembedding):
    """The context-sensitive part of CA-SEM: the sum of (1 − χ) w′; unknown words have none.

    [Z] calls eq. 18 "the context-sensitive part of Eq. 14", which as it is printed it is not: it is all of eq. 14, and
    hardly differs from the sum of the word vectors, since χ v_0 + (1 − χ) w′ is fitted to w.
    """

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """(1 − χ) w′ of each word, and zero."""
        return np.concatenate([reembed(vectors, learnt, sensitive_only=True).numpy(), np.zeros_like(learnt)[None]])


class Average(Method):
    """The mean of the word vectors, of unknown words zero (Wieting et al. 2016)."""

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Sums) -> np.ndarray:
        """Zero: nothing is learnt."""
        return np.zeros(vectors.shape[1], dtype=np.float32)

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """The vectors, and zero."""
        return np.concatenate([vectors, np.zeros_like(vectors[:1])])

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """The means."""
        return sums / np.maximum(lengths, 1)[:, None].astype(sums.dtype)


class SmoothInverseFrequency(Average):
    """SIF (Arora et al. 2017): the mean of a / (a + p(w)) w, without its part along the corpus's first component."""

    def fit(self, vectors: np.ndarray, counts: np.ndarray, means: Sums) -> np.ndarray:
        """Learns the first component of the sentences' means, of length 1; not centred, as in their own code.

        Raises:
            InputError: scikit-learn is not installed.
        """
        try:
            from sklearn.decomposition import TruncatedSVD
        except ImportError:
            raise InputError(
                "--method sif needs the package scikit-learn; pip install 'docnmt_fairseq[embed]'"
            ) from None
        table = self.table(vectors, counts, np.zeros(0))
        sample = np.concatenate(list(means(table)))
        if not sample.any():
            raise InputError("the vectors of all words of the corpus are zero")
        if min(sample.shape) == 1:  # which scikit-learn refuses: one sentence, or vectors of one number
            return np.linalg.svd(sample, full_matrices=False)[2][0].astype(np.float32)
        return TruncatedSVD(1, algorithm="arpack", random_state=0).fit(sample).components_[0].astype(np.float32)

    def table(self, vectors: np.ndarray, counts: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """The weighted vectors, and zero."""
        share = counts / counts.sum()
        weights = self.smoothing / (self.smoothing + share)
        return super().table(vectors * weights[:, None].astype(np.float32), counts, learnt)

    def finish(self, sums: np.ndarray, lengths: np.ndarray, learnt: np.ndarray) -> np.ndarray:
        """The means without their part along the component."""
        means = super().finish(sums, lengths, learnt)
        along = np.einsum("sd,d->s", means, learnt)  # no matrix product: a sentence's must not depend on its place
        return means - np.outer(along, learnt)


METHODS: Dict[str, Type[Method]] = {
    "ca-sem": Reembedding,
    "ca-sem-sensitive": SensitivePart,
    "sif": SmoothInverseFrequency,
    "average": Average,
}
