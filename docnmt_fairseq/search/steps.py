"""Step decoders: the contract of models in a search, ensembles, and any fairseq model."""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Protocol, Sequence, Tuple

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from docnmt_fairseq.models.base import batch_for_model


@dataclass(frozen=True)
class Translated:
    """Best translation of a sentence.

    Attributes:
        row: row of the sentence in its batch.
        slot: slot of its hypotheses.
        made_by: [m] hypothesis of the slot whose decoder step produced each token.
        given: [·] tokens that later sentences see instead, with end of sentence; None: the translation.
    """

    row: int
    slot: int
    made_by: np.ndarray
    given: Optional[Tensor]


class StepDecoder(Protocol):
    """Contract of a decoder of the hypotheses of S sentences in slots.

    Attributes:
        refills: sentences may join while others are decoded; otherwise all sentences in slots start together.
        looks_back: sentences of a document are decoded one after another: each sees the previous translations.
    """

    refills: bool = False
    looks_back: bool = False

    def begin(self) -> None:
        """Starts or ends a search: drops all slots."""

    def encode(self, sample: Dict[str, Any]) -> Any:
        """Encodes a batch."""

    def prepare(self, encoded: Any, rows: np.ndarray) -> Any:
        """Computes the keys and values of sources, for sentences ``rows`` [k] of an encoded batch."""

    def join(self, prepared: Any, places: np.ndarray, slots: np.ndarray) -> None:
        """Puts the prepared sentences ``places`` [j] into ``slots`` [j], which are free or follow the last one.

        Without ``refills`` all prepared sentences join an empty search.
        """

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """Logits or log-probabilities of the next tokens, [S, beam, V], which the caller may modify.

        Args:
            tokens: [S, beam, t] tokens of all hypotheses, starting with end of sentence.
            steps: [S] index of the last token of a slot's hypotheses.
        """

    def reorder(self, parents: np.ndarray) -> None:
        """Makes the hypotheses of the next step continue ``parents`` [S, beam]."""

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""

    def remember(self, encoded: Any, translated: List[Translated]) -> None:
        """Stores translations of sentences of a batch, still in their slots, as target context."""
        return  # models without target-side context


class EnsembleSteps(StepDecoder):
    """Ensemble that averages probabilities, as fairseq does.

    Args:
        decoders: decoders of the models, which apply the temperature.
    """

    def __init__(self, decoders: Sequence[StepDecoder]):
        self.decoders = decoders
        self.refills = all(decoder.refills for decoder in decoders)
        self.looks_back = any(decoder.looks_back for decoder in decoders)

    def begin(self) -> None:
        for decoder in self.decoders:
            decoder.begin()

    def encode(self, sample: Dict[str, Any]) -> List[Any]:
        return [decoder.encode(sample) for decoder in self.decoders]

    def prepare(self, encoded: List[Any], rows: np.ndarray) -> List[Any]:
        return [decoder.prepare(of_model, rows) for decoder, of_model in zip(self.decoders, encoded)]

    def join(self, prepared: List[Any], places: np.ndarray, slots: np.ndarray) -> None:
        for decoder, of_model in zip(self.decoders, prepared):
            decoder.join(of_model, places, slots)

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        of_models = [decoder.step(tokens, steps).float().log_softmax(-1) for decoder in self.decoders]
        return torch.stack(of_models).logsumexp(0) - float(np.log(len(of_models)))

    def reorder(self, parents: np.ndarray) -> None:
        for decoder in self.decoders:
            decoder.reorder(parents)

    def keep(self, slots: np.ndarray) -> None:
        for decoder in self.decoders:
            decoder.keep(slots)

    def remember(self, encoded: List[Any], translated: List[Translated]) -> None:
        for decoder, of_model in zip(self.decoders, encoded):
            decoder.remember(of_model, translated)


class IncrementalSteps(StepDecoder):
    """Step decoder of any fairseq model, by its incremental state.

    Args:
        model: fairseq model with an incremental decoder.
        beam: number of hypotheses per sentence.
        temperature: divisor of the logits.
        device: device of the model.
    """

    def __init__(self, model: BaseFairseqModel, beam: int, temperature: float, device: torch.device):
        self.model, self.beam, self.temperature, self.device = model, beam, temperature, device
        self.begin()
        if beam > 1 and hasattr(model, "set_beam_size"):
            model.set_beam_size(beam)

    def begin(self) -> None:
        self.encoder_out: Any = None
        self.state: Dict[str, Any] = {}
        self.order: Optional[np.ndarray] = None  # [S, beam] rows that the next step continues
        self.fewer = False  # slots than rows of encoder_out

    def encode(self, sample: Dict[str, Any]) -> Any:
        return self.model.encoder.forward_torchscript(batch_for_model(self.model, sample)["net_input"])

    def prepare(self, encoded: Any, rows: np.ndarray) -> Tuple[Any, np.ndarray]:
        return encoded, rows

    def join(self, prepared: Tuple[Any, np.ndarray], places: np.ndarray, slots: np.ndarray) -> None:
        encoded, rows = prepared
        self.state, self.order, self.fewer = {}, None, False
        self.encoder_out = self.model.encoder.reorder_encoder_out(encoded, self._index(rows.repeat(self.beam)))

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        if self.order is not None:
            order = self._index(self.order.flatten())
            self.model.decoder.reorder_incremental_state_scripting(self.state, order)
            if self.fewer:  # otherwise equal for all hypotheses of a sentence
                self.encoder_out = self.model.encoder.reorder_encoder_out(self.encoder_out, order)
                self.fewer = False
        self.order = np.arange(len(tokens) * self.beam).reshape(-1, self.beam)
        rows = self._index(tokens.reshape(-1, tokens.shape[2]))
        logits, extra = self.model.decoder(rows, encoder_out=self.encoder_out, incremental_state=self.state)
        logits = logits[:, -1:] / self.temperature
        log_probs: Tensor = self.model.get_normalized_probs((logits, extra), log_probs=True, sample=None)
        return log_probs[:, -1].unflatten(0, (-1, self.beam))

    def reorder(self, parents: np.ndarray) -> None:
        assert self.order is not None
        self.order = np.take_along_axis(self.order, parents, axis=1)

    def keep(self, slots: np.ndarray) -> None:
        if self.order is not None:
            self.order, self.fewer = self.order[slots], True

    def _index(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
