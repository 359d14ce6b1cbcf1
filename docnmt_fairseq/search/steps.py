"""Contract of the models in a search, and ensembles."""

from dataclasses import dataclass
from typing import Any, Dict, List, Protocol, Sequence

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Translated:
    """Best translation of a sentence in a slot.

    Attributes:
        tokens: [m] tokens with end of sentence.
        slot: number of the slot.
        hypotheses: [m] hypothesis of the slot whose decoder step produced each token.
    """

    tokens: Tensor
    slot: int
    hypotheses: np.ndarray


class StepDecoder(Protocol):
    """Contract of a decoder of the hypotheses of S sentences in slots.

    Attributes:
        refills: sentences may join while others are decoded; otherwise all sentences in slots start together.
        looks_back: sentences of a document are decoded one after another: each sees the previous translations.
    """

    refills: bool
    looks_back: bool

    def begin(self) -> None:
        """Starts or ends a search: drops all slots."""

    def encode(self, sample: Dict[str, Any]) -> Any:
        """Encodes a batch."""

    def prepare(self, encoded: Any, sentences: np.ndarray) -> Any:
        """Computes what hypotheses attend to, for sentences [k] of an encoded batch."""

    def join(self, prepared: Any, places: np.ndarray, slots: np.ndarray) -> None:
        """Puts the prepared sentences ``places`` [j] into ``slots`` [j], which are free or follow the last one.

        Without ``refills`` all prepared sentences join an empty search.
        """

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """Returns logits or log-probabilities of the next tokens, [S, beam, V], which the caller may modify.

        Args:
            tokens: [S, beam, t] tokens of all hypotheses, starting with end of sentence.
            steps: [S] index of the last token of a slot's hypotheses.
        """

    def reorder(self, parents: np.ndarray) -> None:
        """Makes the hypotheses of the next step continue ``parents`` [S, beam]."""

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""

    def remember(self, encoded: Any, sentences: Sequence[int], translated: List[Translated]) -> None:
        """Stores translations of sentences of a batch, still in their slots, as target context."""

    def remember_given(self, encoded: Any, sentences: Sequence[int], tokens: List[Tensor]) -> None:
        """Stores given translations, [m] tokens with end of sentence each, as target context."""


class EnsembleSteps:
    """Ensemble that averages probabilities, as fairseq does.

    Args:
        decoders: decoders of the models, which apply the temperature.
    """

    def __init__(self, decoders: Sequence[StepDecoder]):
        self.decoders = decoders
        self.refills = all(decoder.refills for decoder in decoders)
        self.looks_back = any(decoder.looks_back for decoder in decoders)

    def begin(self) -> None:
        """Starts or ends a search."""
        for decoder in self.decoders:
            decoder.begin()

    def encode(self, sample: Dict[str, Any]) -> List[Any]:
        """Encodes a batch by every model."""
        return [decoder.encode(sample) for decoder in self.decoders]

    def prepare(self, encoded: List[Any], sentences: np.ndarray) -> List[Any]:
        """Prepares sentences for every model."""
        return [decoder.prepare(of_model, sentences) for decoder, of_model in zip(self.decoders, encoded)]

    def join(self, prepared: List[Any], places: np.ndarray, slots: np.ndarray) -> None:
        """Puts sentences into slots of every model."""
        for decoder, of_model in zip(self.decoders, prepared):
            decoder.join(of_model, places, slots)

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """Returns log-probabilities of the next tokens, [S, beam, V]."""
        of_models = [decoder.step(tokens, steps).float().log_softmax(-1) for decoder in self.decoders]
        return torch.stack(of_models).logsumexp(0) - float(np.log(len(of_models)))

    def reorder(self, parents: np.ndarray) -> None:
        """Reorders the hypotheses of every model."""
        for decoder in self.decoders:
            decoder.reorder(parents)

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        for decoder in self.decoders:
            decoder.keep(slots)

    def remember(self, encoded: List[Any], sentences: Sequence[int], translated: List[Translated]) -> None:
        """Stores target context of models that use it."""
        for decoder, of_model in zip(self.decoders, encoded):
            if decoder.looks_back:
                decoder.remember(of_model, sentences, translated)

    def remember_given(self, encoded: List[Any], sentences: Sequence[int], tokens: List[Tensor]) -> None:
        """Stores given target context of models that use it."""
        for decoder, of_model in zip(self.decoders, encoded):
            if decoder.looks_back:
                decoder.remember_given(of_model, sentences, tokens)
