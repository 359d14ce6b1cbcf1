"""What a search asks of the models: :class:`StepDecoder`, the next tokens of all hypotheses, step after step."""

from dataclasses import dataclass
from typing import Any, Dict, List, Protocol, Sequence

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Translated:
    """The best translation of a sentence that was in a slot.

    Attributes:
        tokens: [m] its tokens, the end of sentence included.
        slot: the sentence's.
        hypotheses: [m] which of the slot's hypotheses each of the m steps was that made it.
    """

    tokens: Tensor
    slot: int
    hypotheses: np.ndarray


class StepDecoder(Protocol):
    """Contract of what gives the next tokens of S sentences in slots, as many hypotheses of each.

    Attributes:
        refills: whether sentences may join while others are under way; else all that are in slots began together.
        looks_back: whether sentences of a document are wanted one after another: each sees what was written before.
    """

    refills: bool
    looks_back: bool

    def begin(self) -> None:
        """A search begins, or is over: all slots are given up."""

    def encode(self, sample: Dict[str, Any]) -> Any:
        """What the encoder makes of a batch."""

    def prepare(self, encoded: Any, sentences: np.ndarray) -> Any:
        """What hypotheses look at of some sentences [k] of an encoded batch, by their numbers in it."""

    def join(self, prepared: Any, places: np.ndarray, slots: np.ndarray) -> None:
        """Puts prepared sentences, those at ``places`` [j], into ``slots`` [j], which are free or next to the last.

        Where the decoder does not refill, all that are prepared join while nothing is under way.
        """

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """Logits of the next tokens, or log-probabilities, [S, beam, V], which the caller may change.

        Args:
            tokens: [S, beam, t] of all hypotheses, from the end of sentence that they begin with.
            steps: [S] which of these is the last of a slot's hypotheses.
        """

    def follow(self, parents: np.ndarray) -> None:
        """The hypotheses of the next step follow those of the last one that are named, [S, beam]."""

    def keep(self, slots: np.ndarray) -> None:
        """Gives up all slots but these."""

    def remember(self, encoded: Any, sentences: Sequence[int], translated: List[Translated]) -> None:
        """Sentences of a batch have been translated, and are in their slots still; asked of those that look back."""

    def remember_corrected(self, encoded: Any, sentences: Sequence[int], tokens: List[Tensor]) -> None:
        """The same, with other translations, [m] tokens each, their ends included, for what follows to look back at."""


class EnsembleSteps:
    """Models that work together: their probabilities are averaged, as by fairseq.

    Args:
        decoders: of the models, in one search; each takes part of the temperature itself.
    """

    def __init__(self, decoders: Sequence[StepDecoder]):
        self.decoders = decoders
        self.refills = all(decoder.refills for decoder in decoders)
        self.looks_back = any(decoder.looks_back for decoder in decoders)

    def begin(self) -> None:
        """See :class:`StepDecoder`."""
        for decoder in self.decoders:
            decoder.begin()

    def encode(self, sample: Dict[str, Any]) -> List[Any]:
        """See :class:`StepDecoder`."""
        return [decoder.encode(sample) for decoder in self.decoders]

    def prepare(self, encoded: List[Any], sentences: np.ndarray) -> List[Any]:
        """See :class:`StepDecoder`."""
        return [decoder.prepare(of_model, sentences) for decoder, of_model in zip(self.decoders, encoded)]

    def join(self, prepared: List[Any], places: np.ndarray, slots: np.ndarray) -> None:
        """See :class:`StepDecoder`."""
        for decoder, of_model in zip(self.decoders, prepared):
            decoder.join(of_model, places, slots)

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """See :class:`StepDecoder`; log-probabilities."""
        of_models = [decoder.step(tokens, steps).float().log_softmax(-1) for decoder in self.decoders]
        return torch.stack(of_models).logsumexp(0) - float(np.log(len(of_models)))

    def follow(self, parents: np.ndarray) -> None:
        """See :class:`StepDecoder`."""
        for decoder in self.decoders:
            decoder.follow(parents)

    def keep(self, slots: np.ndarray) -> None:
        """See :class:`StepDecoder`."""
        for decoder in self.decoders:
            decoder.keep(slots)

    def remember(self, encoded: List[Any], sentences: Sequence[int], translated: List[Translated]) -> None:
        """See :class:`StepDecoder`."""
        for decoder, of_model in zip(self.decoders, encoded):
            if decoder.looks_back:
                decoder.remember(of_model, sentences, translated)

    def remember_corrected(self, encoded: List[Any], sentences: Sequence[int], tokens: List[Tensor]) -> None:
        """See :class:`StepDecoder`."""
        for decoder, of_model in zip(self.decoders, encoded):
            if decoder.looks_back:
                decoder.remember_corrected(of_model, sentences, tokens)
