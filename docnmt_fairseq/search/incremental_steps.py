"""Step decoder of any fairseq model, by its incremental state."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.models import BaseFairseqModel
from torch import Tensor

from docnmt_fairseq.models.base import batch_for_model
from docnmt_fairseq.search.steps import Translated


class IncrementalSteps:
    """Implements :class:`~docnmt_fairseq.search.steps.StepDecoder`.

    Args:
        model: fairseq model with an incremental decoder.
        beam: number of hypotheses per sentence.
        temperature: divisor of the logits.
        device: device of the model.
    """

    refills = looks_back = False

    def __init__(self, model: BaseFairseqModel, beam: int, temperature: float, device: torch.device):
        self.model, self.beam, self.temperature, self.device = model, beam, temperature, device
        self.begin()
        if beam > 1 and hasattr(model, "set_beam_size"):
            model.set_beam_size(beam)

    def begin(self) -> None:
        """Starts or ends a search: drops all slots."""
        self.encoder_out: Any = None
        self.state: Dict[str, Any] = {}
        self.order: Optional[np.ndarray] = None  # [S, beam] rows that the next step continues
        self.fewer = False  # slots than rows of encoder_out

    def encode(self, sample: Dict[str, Any]) -> Any:
        """Encodes a batch."""
        return self.model.encoder.forward_torchscript(batch_for_model(self.model, sample)["net_input"])

    def prepare(self, encoded: Any, sentences: np.ndarray) -> Tuple[Any, np.ndarray]:
        """Computes what hypotheses attend to."""
        return encoded, sentences

    def join(self, prepared: Tuple[Any, np.ndarray], places: np.ndarray, slots: np.ndarray) -> None:
        """Puts prepared sentences into slots."""
        encoded, sentences = prepared
        self.state, self.order, self.fewer = {}, None, False
        self.encoder_out = self.model.encoder.reorder_encoder_out(encoded, self._rows(sentences.repeat(self.beam)))

    def step(self, tokens: np.ndarray, steps: np.ndarray) -> Tensor:
        """Returns log-probabilities of the next tokens, [S, beam, V]."""
        if self.order is not None:
            order = self._rows(self.order.flatten())
            self.model.decoder.reorder_incremental_state_scripting(self.state, order)
            if self.fewer:  # otherwise equal for all hypotheses of a sentence
                self.encoder_out = self.model.encoder.reorder_encoder_out(self.encoder_out, order)
                self.fewer = False
        self.order = np.arange(len(tokens) * self.beam).reshape(-1, self.beam)
        rows = self._rows(tokens.reshape(-1, tokens.shape[2]))
        logits, extra = self.model.decoder(rows, encoder_out=self.encoder_out, incremental_state=self.state)
        logits = logits[:, -1:] / self.temperature
        log_probs: Tensor = self.model.get_normalized_probs((logits, extra), log_probs=True, sample=None)
        return log_probs[:, -1].unflatten(0, (-1, self.beam))

    def reorder(self, parents: np.ndarray) -> None:
        """Makes the hypotheses of the next step continue ``parents`` [S, beam]."""
        assert self.order is not None
        self.order = np.take_along_axis(self.order, parents, axis=1)

    def keep(self, slots: np.ndarray) -> None:
        """Drops all slots but these."""
        if self.order is not None:
            self.order, self.fewer = self.order[slots], True

    def remember(self, encoded: Any, sentences: Sequence[int], translated: List[Translated]) -> None:
        """Stores translations as target context."""
        raise NotImplementedError

    def remember_given(self, encoded: Any, sentences: Sequence[int], tokens: List[Tensor]) -> None:
        """Stores given translations as target context."""
        raise NotImplementedError

    def _rows(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)
